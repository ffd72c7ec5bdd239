"""What stands in the offsets topic beside the entries.

It is: who owns the connector (the generation), what driver and tasks tell each other (the control record, the words of
tasks that are through), what a task has counted, what an enumerator remembers, and what closes a segment. Their keys
are lists of three or four elements, which Kafka Connect ignores: it knows lists of two. They begin like a connector's
own entries do not, so nobody takes them for progress.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Self, TypeAlias

import attrs

from headrace.framework.errors import MalformedOffsetError, OffsetsError
from headrace.offsets.key import checked_map

__all__ = [
    "BegunWord",
    "Control",
    "Counters",
    "EndedWord",
    "EnumeratorState",
    "Generation",
    "begun_key",
    "control_key",
    "counter_key",
    "ended_key",
    "enumerator_key",
    "generation_key",
    "is_beside",
    "rollup_key",
    "rollup_prefix",
    "turn_key",
]

FIRST = "headrace"
STATE_VERSION = 1

FIRST_PREFIX = "headrace"
"""The prefix of the ids of a run that has not written down which it has."""

GENERATION_KINDS = {"generation": int, "owner": str, "tasks": int, "stopped": bool, "prefixes": list}

# Inside a class with a counter of that name, `bytes` is the counter.
Raw: TypeAlias = bytes


def generation_key(connector: str) -> bytes:
    """The key of the record that says which run owns the connector; reset never removes it."""
    return _key(connector, "generation")


def control_key(connector: str) -> bytes:
    """The key of the record by which a driver speaks to its tasks."""
    return _key(connector, "control")


def counter_key(connector: str, task_id: int) -> bytes:
    """The key of the record in which a task keeps its totals of a run."""
    return _key(connector, "counters", task_id)


def begun_key(connector: str, task_id: int) -> bytes:
    """The key of the record by which a task says that its part in a micro-batch has begun."""
    return _key(connector, "begun", task_id)


def ended_key(connector: str, task_id: int) -> bytes:
    """The key of the record by which a task says that its part in a micro-batch is over."""
    return _key(connector, "ended", task_id)


def enumerator_key(connector: str) -> bytes:
    """The key of the record in which the driver keeps what its enumerator must remember."""
    return _key(connector, "enumerator")


def rollup_key(connector: str, shard: int) -> bytes:
    """The key of a shard of the roll-up."""
    return _key(connector, "rollup", shard)


def rollup_prefix(connector: str) -> bytes:
    """What the keys of the roll-up's shards begin with; the shard's number and a bracket follow."""
    return _key(connector, "rollup")[:-1] + b","


def turn_key(connector: str, partition: int) -> bytes:
    """The key of the record that a partition gets so that the broker closes its segment, which is then cleaned."""
    return _key(connector, "turn", partition)


def is_beside(key: bytes) -> bool:
    """Whether a key is that of a record beside the entries, whichever connector it is of."""
    try:
        parts = json.loads(key)
    except ValueError:
        return False
    match parts:
        case [str(first), {"connector": str()}, str(), *rest]:
            return first == FIRST and len(rest) <= 1
    return False


@attrs.frozen(kw_only=True)
class Generation:
    """Which run owns the connector: its number, who it is, and which transactional ids may be alive.

    Those are the ids of `tasks` tasks and of the driver, under every one of `prefixes`: more than one while a run takes
    over from one with another `transactional.id.prefix`. `stopped` is written by a clean stop: nothing of this
    connector is running. `others` is what a newer version has added; it is written again as it was.
    """

    generation: int = 0
    owner: str = ""
    tasks: int = 0
    stopped: bool = False
    prefixes: Sequence[str] = ()
    others: Mapping[str, Any] = attrs.field(factory=dict)

    def encode(self) -> bytes:
        """As it stands in the topic."""
        named = attrs.asdict(self, filter=lambda field, _: field.name != "others")
        return _encode({**named, **self.others})

    @classmethod
    def decode(cls, data: bytes | None, key: bytes = b"") -> Self:
        """From the topic; a record that names no prefixes is of a version that did not write them down.

        `MalformedOffsetError` for what is no such record; it names the `key`.
        """
        found = _loaded(data, key) if data else {}
        known = {"prefixes": [FIRST_PREFIX] if found else [], **_known(cls, found)}
        for name, value in known.items():
            if not isinstance(value, GENERATION_KINDS[name]):
                raise _unreadable(key, f"{name}={value!r} is of another kind")
        return cls(**known, others={name: value for name, value in found.items() if name not in known})

    def is_same_run(self, other: "Generation") -> bool:
        """Whether both are of one run, and of one of its claims: it makes another one to move splits."""
        return (self.generation, self.owner) == (other.generation, other.owner)


@attrs.frozen(kw_only=True)
class Control:
    """What a driver tells the tasks of one micro-batch; a hint, checked against the run it is from."""

    generation: int = 0
    owner: str = ""
    batch: int = -1
    stop: bool = False
    end_batch: bool = False

    def encode(self) -> bytes:
        """As it stands in the topic."""
        return _encode(attrs.asdict(self))

    @classmethod
    def decode(cls, data: bytes | None) -> Self:
        """From the topic."""
        return cls(**_known(cls, json.loads(data) if data else {}))


@attrs.frozen(kw_only=True)
class BegunWord:
    """What a task says when its part in a micro-batch begins, where a run's end depends on it.

    A hint, checked against run and batch: until a worker has started nobody can tell whether the source is idle.
    """

    generation: int = 0
    owner: str = ""
    batch: int = -1

    def encode(self) -> bytes:
        """As it stands in the topic."""
        return _encode(attrs.asdict(self))

    @classmethod
    def decode(cls, data: bytes | None) -> Self:
        """From the topic."""
        return cls(**_known(cls, json.loads(data) if data else {}))


@attrs.frozen(kw_only=True)
class EndedWord:
    """What a task says when its part in a micro-batch is over and others' are not.

    A hint, checked against run and batch: it lets the driver end a batch for which it has other work, and all that
    counts stands in the report, which comes when the whole batch is over. `fatal` is an error that ends the run.
    """

    generation: int = 0
    owner: str = ""
    batch: int = -1
    exhausted: bool = False
    records: int = 0
    wants_splits: bool = False
    rule_met: bool = False
    fatal: bool = False

    def encode(self) -> bytes:
        """As it stands in the topic."""
        return _encode(attrs.asdict(self))

    @classmethod
    def decode(cls, data: bytes | None) -> Self:
        """From the topic."""
        return cls(**_known(cls, json.loads(data) if data else {}))


@attrs.frozen(kw_only=True)
class EnumeratorState:
    """What an enumerator has to remember from one run to the next: a flat map, with the version of this form.

    What an older version wrote is read for ever.
    """

    state: Mapping[str, Any]

    def encode(self) -> bytes:
        """As it stands in the topic; `OffsetValueError` for a map that is not flat."""
        state = checked_map(self.state, what="what an enumerator remembers")
        return _encode({"version": STATE_VERSION, "state": state})

    @classmethod
    def decode(cls, data: bytes | None, key: bytes = b"") -> Self | None:
        """From the topic; None if nothing is remembered. `OffsetsError` for a version from the future.

        `MalformedOffsetError` for what is no such record; it names the `key`.
        """
        if data is None:
            return None
        found = _loaded(data, key)
        if not isinstance(found.get("version"), int) or not isinstance(found.get("state"), dict):
            raise _unreadable(key, "it has no version and no state")
        if found["version"] != STATE_VERSION:
            raise OffsetsError(
                f"what the enumerator has to remember was stored in version {found['version']}, by a newer headrace; "
                f"this one reads version {STATE_VERSION}: run the newer one, or reset the connector's offsets"
            )
        return cls(state=found["state"])


@attrs.frozen(kw_only=True)
class Counters:
    """What a task has committed in one run, over all its attempts and micro-batches."""

    owner: str = ""
    records: int = 0
    bytes: int = 0
    objects: int = 0
    transactions: int = 0
    dead_lettered: int = 0

    def encode(self) -> Raw:
        """As it stands in the topic."""
        return _encode(attrs.asdict(self))

    @classmethod
    def decode(cls, data: Raw | None) -> Self:
        """From the topic."""
        return cls(**_known(cls, json.loads(data) if data else {}))

    def plus(self, counted: Mapping[str, int]) -> "Counters":
        """These totals and what one more transaction has."""
        return attrs.evolve(self, **{name: getattr(self, name) + by for name, by in counted.items()})


@cache
def _key(connector: str, *rest: str | int) -> bytes:
    return _encode([FIRST, {"connector": connector}, *rest])


def _encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _loaded(data: bytes, key: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise _unreadable(key, str(error)) from error
    if not isinstance(found, dict):
        raise _unreadable(key, "it is no object")
    return found


def _unreadable(key: bytes, reason: str) -> MalformedOffsetError:
    return MalformedOffsetError(
        f"the record {key.decode()} of the offsets topic cannot be read: {reason}; run the headrace that wrote it, or, "
        "once nothing of the connector runs, write a record of this key without a value"
    )


def _known(cls: type[attrs.AttrsInstance], found: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in attrs.fields(cls)} - {"others"}
    return {name: value for name, value in found.items() if name in names}
