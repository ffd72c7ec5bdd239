"""One test's connector: its place at the source, its topics, its runs."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from headrace.framework.dead_letter import DeadLetter, known_headers
from headrace.framework.driver.summary import RunSummary
from headrace.offsets.codec import decode_key, key_prefix
from headrace.offsets.key import OffsetManagerKey
from headrace.testing.engines import Engine, Running
from headrace.testing.source_harness import SourceHarness
from headrace.testing.topics import await_records, create_topic, read_topic

__all__ = ["Trial", "fresh_name", "records_of"]

OFFSET_PARTITIONS = 3


def records_of(piece: str, count: int, *, start: int = 0) -> list[bytes]:
    """`count` records of a piece, each unlike any other of the test."""
    return [b'{"piece":"%s","number":%d}' % (piece.encode(), number) for number in range(start, start + count)]


@attrs.define(kw_only=True)
class Trial:
    """Runs one connector again and again, on one engine, and looks at what it leaves behind on a real broker.

    The records topic has one partition, so the order in which things became visible can be seen.
    """

    harness: SourceHarness
    engine: Engine
    bootstrap_servers: str
    name: str
    pieces: dict[str, list[bytes]] = attrs.field(factory=dict, init=False)
    _place: Mapping[str, str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._place = self.harness.prepare(self.name)
        create_topic(self.bootstrap_servers, self.topic)

    @property
    def topic(self) -> str:
        """The topic of the records."""
        return f"{self.name}-records"

    @property
    def dead_topic(self) -> str:
        """The topic of the dead letters, where there are any."""
        return f"{self.name}-dead"

    @property
    def tolerant(self) -> Mapping[str, str]:
        """The configuration with which bad records are passed over, as `run` takes it."""
        return {"errors__tolerance": "all", "errors__deadletterqueue__topic__name": self.dead_topic}

    def dead_letters(self) -> list[DeadLetter]:
        """What readers of committed records see on the topic of the dead letters."""
        found = [known_headers(message.headers()) for message in read_topic(self.bootstrap_servers, self.dead_topic)]
        return [letter for headers in found if (letter := DeadLetter.from_headers(headers)) is not None]

    def props(self, **changes: str) -> dict[str, str]:
        """The configuration, with `changes`, in whose keys two underscores stand for each dot."""
        return {
            "name": self.name,
            "bootstrap.servers": self.bootstrap_servers,
            "topic": self.topic,
            "offset.storage.topic": f"{self.name}-offsets",
            "offset.storage.partitions": str(OFFSET_PARTITIONS),
            **self._place,
            **{key.replace("__", "."): value for key, value in changes.items()},
        }

    def add(self, piece: str, count: int) -> None:
        """Put a piece of so many records there."""
        self.put(piece, records_of(piece, count))

    def put(self, piece: str, records: Sequence[bytes]) -> None:
        """Put a piece of these records there."""
        self.pieces[piece] = list(records)
        self.harness.add(piece, records)

    def run(self, **changes: str) -> RunSummary:
        """Read what there is; a run that fails is a failure of the test."""
        summary = self.attempt(**changes)
        assert summary.state == "COMPLETED", summary.error  # noqa: S101 - the kit's own way to fail a test
        return summary

    def attempt(self, **changes: str) -> RunSummary:
        """Read what there is, or fail."""
        return self.engine.run(self.props(**changes))

    @contextmanager
    def running(self, **changes: str) -> Iterator[Running]:
        """A continuous run."""
        with self.engine.running(self.props(**changes)) as running:
            yield running

    def await_values(self, count: int) -> list[bytes]:
        """Wait until so many records are committed on the topic."""
        return [message.value() or b"" for message in await_records(self.bootstrap_servers, self.topic, count)]

    def values(self, topic: str | None = None) -> list[bytes]:
        """The values that readers of committed records see, in the topic's order."""
        return [message.value() or b"" for message in read_topic(self.bootstrap_servers, topic or self.topic)]

    def everything(self) -> list[bytes]:
        """What all pieces together should be on the topic, piece by piece."""
        return [value for records in self.pieces.values() for value in self.harness.expected(records)]

    def values_of(self, piece: str) -> list[bytes]:
        """What is on the topic of one piece, in the topic's order."""
        wanted = set(self.harness.expected(self.pieces[piece]))
        return [value for value in self.values() if value in wanted]

    def entries(self, offsets_topic: str | None = None) -> dict[bytes, bytes]:
        """The connector's entries on the offsets topic: raw keys and the last values."""
        found: dict[bytes, bytes] = {}
        mine = key_prefix(self.name)
        for message in read_topic(self.bootstrap_servers, offsets_topic or f"{self.name}-offsets"):
            key, value = message.key(), message.value()
            if isinstance(key, bytes) and key.startswith(mine):
                found.pop(key, None)
                if isinstance(value, bytes):
                    found[key] = value
        return found

    def offset(self, piece: str) -> dict[str, Any] | None:
        """The stored offset of a piece, or None."""
        wanted = OffsetManagerKey(self.harness.partition(piece))
        for raw, value in self.entries().items():
            if decode_key(raw)[1] == wanted:
                found: dict[str, Any] = json.loads(value)
                return found
        return None

    def records_done(self, piece: str) -> int:
        """How many records of a piece are done, by its stored offset."""
        found = self.offset(piece)
        return 0 if found is None else self.harness.records_done(found)

    def transactions(self, topic: str | None = None) -> list[list[bytes]]:
        """The committed records of the topic by transaction, where no two of them were interleaved.

        The end of a transaction takes a place of its own on the topic, so a gap in the offsets is one.
        """
        found: list[list[bytes]] = []
        expected = None
        for message in read_topic(self.bootstrap_servers, topic or self.topic):
            offset = message.offset() or 0
            if offset != expected:
                found.append([])
            found[-1].append(message.value() or b"")
            expected = offset + 1
        return found


def fresh_name(case: str) -> str:
    """A name for a test's connector that is good for topics and buckets, and that no other run has."""
    return f"{case.replace('_', '-').lower()[:30].strip('-')}-{time.time_ns():x}"
