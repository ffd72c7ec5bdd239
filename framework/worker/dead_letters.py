"""What a task does with records that are none, where they do not fail it."""

import logging
import time
from collections.abc import Mapping
from typing import Any

import attrs

from headrace.framework.dead_letter import DeadLetter, connect_headers
from headrace.framework.errors import PipelineError, RecordTooLargeError, Where
from headrace.framework.record import RecordBatch
from headrace.framework.schema import SchemaAndValue
from headrace.framework.sink import SinkWriter

__all__ = ["DeadLetters"]

log = logging.getLogger(__name__)

AT_MOST = 10
WITHIN_S = 10.0
LONGEST_LOGGED = 200


@attrs.define(kw_only=True)
class DeadLetters:
    """Sends dead letters in the transaction in which the records around them are sent, and says so in the log.

    Without a `topic` a bad record is counted only. `classes` are the names of what works at each stage. Used on the
    thread that feeds the sink.
    """

    connector: str
    task_id: int
    writer: SinkWriter
    topic: str | None = None
    has_context: bool = True
    logs: bool = False
    logs_content: bool = False
    longest: int = 0
    classes: Mapping[str, str] = attrs.field(factory=dict)
    _logged: int = attrs.field(default=0, init=False)
    _unlogged: int = attrs.field(default=0, init=False)
    _since: float = attrs.field(default=float("-inf"), init=False)

    @property
    def word(self) -> str:
        """What the run's summary says once there is one."""
        if self.topic is None:
            return "bad records were passed over, and dropped: errors.deadletterqueue.topic.name is not set"
        return f"bad records were passed over: they are on the topic {self.topic} (headrace dlq list)"

    def piece(self, batch: RecordBatch) -> None:
        """A piece of an object is no record."""
        piece = batch.rejected
        if piece is not None:
            letter = DeadLetter.of_piece(self.connector, batch)
            self._send(letter, piece.error, batch, self._key(batch), piece.raw)

    def value(self, batch: RecordBatch, index: int, error: PipelineError) -> None:
        """A value of a batch cannot be converted, or is too large for the sink."""
        letter = DeadLetter.of_value(self.connector, batch, index, error)
        self._send(letter, error, batch, self._key(batch), self._raw(batch.values[index]))

    def close(self) -> None:
        """Say how many bad records the log has not told of one by one; there are no more for now."""
        if self._unlogged:
            log.error("%s: %d more bad records were passed over", self.connector, self._unlogged)
        self._unlogged = 0

    def _send(
        self, letter: DeadLetter, error: PipelineError, batch: RecordBatch, key: bytes | None, raw: bytes | None
    ) -> None:
        error.located(Where(connector=self.connector, task=self.task_id))
        if self.logs:
            self._log(error, raw)
        if self.topic is None:
            return
        headers = letter.headers()
        if self.has_context:
            headers += connect_headers(
                letter,
                error,
                topic=batch.topic,
                partition=batch.partition,
                task=self.task_id,
                class_name=self.classes.get(error.where.stage or "", ""),
            )
        try:
            self.writer.write(self.topic, key, [raw], headers=headers)
        except RecordTooLargeError:
            # Where it lies is said all the same; its bytes can be read there.
            self.writer.write(self.topic, key, [None], headers=headers)

    def _key(self, batch: RecordBatch) -> bytes | None:
        key = batch.key.value if isinstance(batch.key, SchemaAndValue) else batch.key
        return self._raw(key)

    def _raw(self, value: Any) -> bytes | None:
        """The bytes of what is bytes or a text already; anything else has none of its own."""
        data = value.encode(errors="surrogatepass") if isinstance(value, str) else value
        return bytes(data) if isinstance(data, bytes | bytearray) and self._fits(data) else None

    def _fits(self, data: bytes | bytearray) -> bool:
        return not self.longest or len(data) <= self.longest

    def _log(self, error: PipelineError, raw: bytes | None) -> None:
        now = time.monotonic()
        if now - self._since > WITHIN_S:
            self.close()
            self._since, self._logged = now, 0
        if self._logged >= AT_MOST:
            self._unlogged += 1
            return
        self._logged += 1
        content = f"; it begins with {raw[:LONGEST_LOGGED]!r}" if self.logs_content and raw is not None else ""
        log.error("a bad record is passed over: %s%s", error, content)
