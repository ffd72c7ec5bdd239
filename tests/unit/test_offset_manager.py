"""What a task may rely on when it asks for its progress."""

import threading

import pytest

from headrace.framework.errors import OffsetValueError
from headrace.framework.record import RecordBatch, SourceRecord
from headrace.offsets.entry import OffsetManagerEntry
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.manager import OffsetManager
from headrace.offsets.memory import MemoryOffsetStore

KEY = OffsetManagerKey({"bucket": "b", "objectKey": "k"})
REVERSED = OffsetManagerKey({"objectKey": "k", "bucket": "b"})
OTHER = OffsetManagerKey({"bucket": "b", "objectKey": "other"})


class CountedStore(MemoryOffsetStore):
    """A store in memory that counts how often it is asked."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def get(self, keys):
        self.calls.append(list(keys))
        return super().get(keys)


@pytest.fixture
def store():
    return CountedStore()


@pytest.fixture
def manager(store):
    return OffsetManager(store)


def entry(count, key=KEY):
    return OffsetManagerEntry(key, {"recordCount": count})


def test_what_is_not_known_is_none(manager, store):
    """A key without an entry, and one whose entry has no properties, gives None, and no entry is made of it."""
    store.committed({OTHER: {}})

    assert manager.get_entry(KEY, pytest.fail) is None
    assert manager.get_entry(OTHER, pytest.fail) is None


def test_an_entry_comes_from_the_store_once(manager, store):
    """An entry is read from the store the first time, and from memory afterwards."""
    store.committed({KEY: {"recordCount": 3}})

    assert manager.get_entry(KEY, dict) == {"recordCount": 3}
    assert manager.get_entry(KEY, dict) == {"recordCount": 3}
    assert store.calls == [[KEY]]


def test_both_orders_of_names_are_one_entry(manager, store):
    """An entry is found, replaced and removed under either order of its names (finding 1)."""
    store.committed({KEY: {"recordCount": 1}})
    assert manager.get_entry(REVERSED, dict) == {"recordCount": 1}

    manager.written(REVERSED, {"recordCount": 2})
    assert manager.get_entry(KEY, dict) == {"recordCount": 2}
    assert len(manager.pending()) == 1


def test_an_entry_object_is_made_by_the_creator(manager, store):
    """The creator gets the stored map, and what it makes is the answer."""
    store.committed({KEY: {"recordCount": 3, "etag": "e"}})

    found = manager.get_entry(KEY, OffsetManagerEntry(KEY).from_properties)

    assert found is not None
    assert found.record_count == 3
    assert found.get_string("etag") == "e"


def test_populating_is_one_call_to_the_store(manager, store):
    """Many keys are read in one go; those found cost nothing more, and those not found are looked up again."""
    store.committed({KEY: {"recordCount": 1}})

    manager.populate_offset_manager([KEY, OTHER])
    assert store.calls == [[KEY, OTHER]]

    assert manager.get_entry(KEY, dict) == {"recordCount": 1}
    assert manager.get_entry(OTHER, dict) is None
    assert store.calls == [[KEY, OTHER], [OTHER]]

    manager.populate_offset_manager([KEY])
    assert len(store.calls) == 2


def test_a_task_sees_its_own_writes(manager, store):
    """What is noted and what is sent is seen at once, before anything is committed (rule 6)."""
    store.committed({KEY: {"recordCount": 1}})

    manager.add_entry(entry(2))
    assert manager.get_entry(KEY, dict) == {"recordCount": 2}
    assert manager.pending() == {}

    manager.written(KEY, {"recordCount": 3})
    assert manager.get_entry(KEY, dict) == {"recordCount": 3}
    assert manager.pending() == {KEY: {"recordCount": 3}}
    assert store.get([KEY]) == {KEY: {"recordCount": 1}}


def test_a_commit_makes_writes_part_of_the_committed_view(manager, store):
    """After the commit the store has the entry, nothing is pending, and another task's manager sees it."""
    manager.get_entry(KEY, dict)
    manager.written(KEY, {"recordCount": 2})
    manager.committed()

    assert manager.pending() == {}
    assert manager.get_entry(KEY, dict) == {"recordCount": 2}
    assert OffsetManager(store).get_entry(KEY, dict) == {"recordCount": 2}


def test_a_store_takes_in_the_very_map_that_was_pending(manager, store, monkeypatch):
    """What a writer was given is what the store is told of, unless something was written since."""
    told = []
    monkeypatch.setattr(store, "committed", told.append)
    manager.written(KEY, {"recordCount": 2})
    pending = manager.pending()
    manager.committed()
    manager.written(KEY, {"recordCount": 3})
    manager.pending()
    manager.written(KEY, {"recordCount": 4})
    manager.committed()

    assert told[0] is pending
    assert told[1] == {KEY: {"recordCount": 4}}


def test_an_abort_takes_writes_back(manager, store):
    """After an abort nothing that was noted or sent since the last commit counts as read (rule 8)."""
    store.committed({KEY: {"recordCount": 1}})
    manager.get_entry(KEY, dict)
    manager.written(KEY, {"recordCount": 2})
    manager.add_entry(entry(3))
    manager.add_entry(entry(1, OTHER))

    manager.aborted()

    assert manager.pending() == {}
    assert manager.get_entry(KEY, dict) == {"recordCount": 1}
    assert manager.get_entry(OTHER, dict) is None


def test_a_closed_iterator_takes_with_it_what_it_did_not_send(manager):
    """What was noted for records that were never sent is forgotten with the iterator; what was sent is not."""
    manager.written(KEY, {"recordCount": 2})
    manager.add_entry(entry(5))
    manager.add_entry(entry(1, OTHER))

    manager.iterator_closed()

    assert manager.get_entry(KEY, dict) == {"recordCount": 2}
    assert manager.get_entry(OTHER, dict) is None
    assert manager.pending() == {KEY: {"recordCount": 2}}


@pytest.mark.parametrize(
    "what",
    [
        KEY,
        REVERSED,
        SourceRecord(source_partition=REVERSED.mapping, source_offset={"recordCount": 9}, topic="t", value=b""),
        RecordBatch(source_partition=KEY.mapping, source_offset={"recordCount": 9}, topic="t", values=()),
    ],
    ids=["key", "reversed key", "record", "batch"],
)
def test_remove_drops_only_what_is_committed(manager, store, what):
    """Removing a key, or a record's, has the committed entry read again, and leaves the task's own writes alone."""
    store.committed({KEY: {"recordCount": 1}})
    manager.get_entry(KEY, dict)
    store.committed({KEY: {"recordCount": 2}})

    assert manager.get_entry(KEY, dict) == {"recordCount": 1}
    manager.remove(what)
    assert manager.get_entry(KEY, dict) == {"recordCount": 2}

    manager.written(KEY, {"recordCount": 3})
    manager.remove(what)
    assert manager.pending() == {KEY: {"recordCount": 3}}
    manager.add_entry(entry(4))
    manager.remove(what)
    assert manager.get_entry(KEY, dict) == {"recordCount": 4}


def test_maps_in_and_out_are_copies(manager, store):
    """No change to a map that went in or came out reaches the manager."""
    offset = {"recordCount": 1}
    manager.written(KEY, offset)
    offset["recordCount"] = 2
    manager.pending()[KEY]["recordCount"] = 3
    manager.get_entry(KEY, dict)["recordCount"] = 4
    assert manager.get_entry(KEY, dict) == {"recordCount": 1}

    noted = entry(5)
    manager.add_entry(noted)
    noted.increment_record_count()
    assert manager.get_entry(KEY, dict) == {"recordCount": 5}

    store.committed({OTHER: {"recordCount": 6}})
    manager.get_entry(OTHER, lambda properties: properties.update(recordCount=7))
    assert manager.get_entry(OTHER, dict) == {"recordCount": 6}


@pytest.mark.parametrize("offset", [{"recordCount": 2**63}, {"position": {"nested": 1}}])
def test_what_cannot_be_stored_is_refused_at_once(manager, offset):
    """An offset that the topic could not keep is refused when it is handed over, and nothing of it is kept."""

    class Careless(OffsetManagerEntry):
        def get_properties(self):
            return offset

    with pytest.raises(OffsetValueError):
        manager.written(KEY, offset)
    with pytest.raises(OffsetValueError):
        manager.add_entry(Careless(KEY))

    assert manager.get_entry(KEY, dict) is None
    assert manager.pending() == {}


def test_unknown_properties_and_types_survive_a_restart(manager, store):
    """Whatever flat properties were committed come back in a new run, integers as integers."""
    offset = {"recordCount": 2**63 - 1, "complete": True, "etag": "e", "ratio": 1.0, "none": None}
    manager.written(KEY, offset)
    manager.committed()

    found = OffsetManager(store).get_entry(KEY, dict)

    assert found == offset
    assert [type(value) for value in found.values()] == [int, bool, str, float, type(None)]


def test_a_commit_in_the_middle_of_a_read_is_not_forgotten():
    """An entry that another thread commits while the store is being read is not hidden by what was read before."""

    class Interrupted(MemoryOffsetStore):
        """Answers with what it had before the commit, which comes while it is answering."""

        def get(self, keys):
            before = super().get(keys)
            if not committing.is_alive() and committing.ident is None:
                committing.start()
                committing.join(timeout=0.2)
            return before

    store = Interrupted()
    store.committed({KEY: {"recordCount": 1}})
    manager = OffsetManager(store)
    manager.written(KEY, {"recordCount": 2})
    committing = threading.Thread(target=manager.committed)

    manager.populate_offset_manager([KEY])
    committing.join()

    assert manager.get_entry(KEY, dict) == {"recordCount": 2}
