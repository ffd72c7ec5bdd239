"""An offset manager against a model: three dictionaries, looked through from the newest to the oldest.

The machine does what a task and its worker loop do, in any order, over a store that survives restarts. Whatever it has
done, every key reads as in the model, and the store holds what was committed and nothing else.
"""

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.offsets.entry import OffsetManagerEntry
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.manager import OffsetManager
from headrace.offsets.memory import MemoryOffsetStore

NAMES = ["a", "b", "c"]
names = st.sampled_from(NAMES)
counts = st.integers(1, 9)


def key_of(name, *, backwards):
    parts = [("bucket", "x"), ("objectKey", name)]
    return OffsetManagerKey(dict(reversed(parts) if backwards else parts))


keys = st.builds(key_of, names, backwards=st.booleans())


class OffsetManagerMachine(RuleBasedStateMachine):
    """What a task sees, and what the worker loop tells the manager."""

    def __init__(self):
        super().__init__()
        self.store = MemoryOffsetStore()
        self.manager = OffsetManager(self.store)
        self.noted, self.sent, self.stored = {}, {}, {}

    @rule(key=keys, count=counts)
    def note(self, key, count):
        self.manager.add_entry(OffsetManagerEntry(key, {"recordCount": count}))
        self.noted[key.mapping["objectKey"]] = count

    @rule(key=keys, count=counts)
    def send(self, key, count):
        self.manager.written(key, {"recordCount": count})
        self.sent[key.mapping["objectKey"]] = count
        self.noted.pop(key.mapping["objectKey"], None)

    @rule(wanted=st.lists(keys))
    def populate(self, wanted):
        self.manager.populate_offset_manager(wanted)

    @rule(key=keys)
    def remove(self, key):
        self.manager.remove(key)

    @rule()
    def commit(self):
        self.manager.committed()
        self.stored |= self.sent
        self.sent = {}

    @rule()
    def abort(self):
        self.manager.aborted()
        self.noted, self.sent = {}, {}

    @rule()
    def close_iterator(self):
        self.manager.iterator_closed()
        self.noted = {}

    @rule()
    def crash_and_restart(self):
        self.manager = OffsetManager(self.store)
        self.noted, self.sent = {}, {}

    @rule(key=keys)
    def read(self, key):
        expected = (self.stored | self.sent | self.noted).get(key.mapping["objectKey"])
        found = self.manager.get_entry(key, dict)
        assert found == (None if expected is None else {"recordCount": expected})

    @invariant()
    def only_what_was_committed_is_stored(self):
        stored = {key.mapping["objectKey"]: properties["recordCount"] for key, properties in self.store.items()}
        assert stored == self.stored

    def teardown(self):
        for name in NAMES:
            self.read(key_of(name, backwards=True))


class TestOffsetManager(OffsetManagerMachine.TestCase):
    """Every sequence of steps that Hypothesis can think of."""
