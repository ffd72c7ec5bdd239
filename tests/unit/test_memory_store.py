"""The store in memory behaves like the offsets topic, without a broker."""

import threading

import pytest

from headrace.framework.errors import OffsetValueError
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.memory import MemoryOffsetStore

ONE = OffsetManagerKey({"bucket": "b", "objectKey": "1"})
TWO = OffsetManagerKey({"bucket": "b", "objectKey": "2"})


def test_entries_are_found_in_either_order_of_names():
    """What was committed under one order of names is found under the other (finding 1)."""
    store = MemoryOffsetStore()
    store.committed({ONE: {"recordCount": 1}})

    assert store.get([OffsetManagerKey({"objectKey": "1", "bucket": "b"})]) == {ONE: {"recordCount": 1}}


def test_the_last_commit_wins_and_a_tombstone_forgets():
    """A later entry replaces an earlier one as a whole, and None removes it."""
    store = MemoryOffsetStore()
    store.committed({ONE: {"recordCount": 1, "etag": "e"}, TWO: {"recordCount": 1}})
    store.committed({ONE: {"recordCount": 2}, TWO: None})

    assert dict(store.items()) == {ONE: {"recordCount": 2}}
    assert store.get([ONE, TWO]) == {ONE: {"recordCount": 2}}
    assert repr(store) == "MemoryOffsetStore(1 entries)"


def test_maps_in_and_out_are_copies():
    """A change to a map that went in, or to one that came out, does not reach the store."""
    store = MemoryOffsetStore()
    properties = {"recordCount": 1}
    store.committed({ONE: properties})

    properties["recordCount"] = 2
    store.get([ONE])[ONE]["recordCount"] = 3
    next(store.items())[1]["recordCount"] = 4

    assert store.get([ONE])[ONE] == {"recordCount": 1}


def test_a_commit_is_all_or_nothing():
    """Where one of several entries cannot be stored, none is."""
    store = MemoryOffsetStore()

    with pytest.raises(OffsetValueError):
        store.committed({ONE: {"recordCount": 1}, TWO: {"recordCount": 2**63}})

    assert list(store.items()) == []


def test_threads_may_share_it():
    """Entries that several threads commit while another one lists them all arrive, and listing never fails."""
    store = MemoryOffsetStore()
    begin = threading.Barrier(5)

    def commit(task):
        begin.wait()
        for number in range(200):
            store.committed({OffsetManagerKey({"task": task, "number": number}): {"recordCount": number}})

    threads = [threading.Thread(target=commit, args=(task,)) for task in range(4)]
    for thread in threads:
        thread.start()
    begin.wait()
    while any(thread.is_alive() for thread in threads):
        assert all(properties["recordCount"] >= 0 for _, properties in store.items())
    for thread in threads:
        thread.join()

    assert len(dict(store.items())) == 800
