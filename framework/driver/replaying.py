"""Dead letters, looked at and replayed from outside of a run."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import attrs

from headrace.converters.base import Converter
from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver.altering import OpenedConnector
from headrace.framework.errors import (
    ConfigError,
    DataError,
    Fault,
    HeadraceError,
    PipelineError,
    RecordTooLargeError,
    SourceError,
    Where,
)
from headrace.framework.parts import PART
from headrace.framework.record import RecordBatch
from headrace.framework.replay import Replays
from headrace.framework.splits import SplitSource
from headrace.framework.worker.execute import make_converter

if TYPE_CHECKING:
    from headrace.offsets.kafka.dead_letters import Buried, Replaying

__all__ = ["LETTERS", "Replayed", "dead_letters", "replay"]

LETTERS = "errors.deadletterqueue.topic.name"


@attrs.frozen(kw_only=True)
class Replayed:
    """What became of one letter: how many records were sent for it, or why it stays."""

    found: "Buried"
    records: int = 0
    error: str | None = None


def dead_letters(props: Mapping[str, str], *, pattern: str | None = None) -> Iterator["Buried"] | None:
    """The connector's dead letters that are not replayed, one by one; None where there is no topic yet.

    With a `pattern`, as file names have it, those of the objects that it fits. Nothing is written.
    """
    from headrace.offsets.kafka.dead_letters import read_letters  # noqa: PLC0415 - Kafka comes in when it is used

    connector = OpenedConnector.of(props)
    found = read_letters(connector.settings, _topic_of(connector.config))
    return None if found is None else (one for one in found if _fits(one, pattern))


def replay(props: Mapping[str, str], *, pattern: str | None = None) -> Iterator[Replayed]:
    """Read each letter's piece of the source again and send what is good now, each in a transaction of its own.

    The transaction says as well that the letter is done, so that nobody sends it again. What still is bad stays where
    it is. What concerns no single letter (Kafka, another replay of the same connector) is raised.
    """
    from headrace.offsets.kafka.dead_letters import replaying  # noqa: PLC0415 - Kafka comes in when it is used

    connector = OpenedConnector.of(props)
    topic, source = _topic_of(connector.config), connector.source
    if not isinstance(source, SplitSource):
        raise SourceError("a plain task cannot read what stands on the dead-letter topic again")
    replays = source.replays()
    try:
        with replaying(connector.settings, topic) as session:
            one_by_one = _Replayer(connector.config, replays, session)
            for found in session.letters():
                if _fits(found, pattern):
                    yield one_by_one.replay(found)
    finally:
        replays.close()


@attrs.define
class _Replayer:
    """Sends what a letter stands for, as a task would have sent it."""

    config: SourceCommonConfig
    replays: Replays
    session: "Replaying"
    _key_converter: Converter = attrs.field(init=False)
    _value_converter: Converter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._key_converter = make_converter(self.config, "key")
        self._value_converter = make_converter(self.config, "value")

    def replay(self, found: "Buried") -> Replayed:
        records = 0
        try:
            for batch in self.replays.read(found.letter):
                records += self._send(batch)
        except (DataError, SourceError, RecordTooLargeError) as error:
            self.session.abort()
            return Replayed(found=found, error=_said(error, found))
        except BaseException:
            self.session.abort()
            raise
        self.session.done(found)
        return Replayed(found=found, records=records)

    def _send(self, batch: RecordBatch) -> int:
        if batch.topic in {self.config.offset_storage_topic, self.config.dead_letter_topic}:
            raise SourceError(f"records cannot go to {batch.topic}: it is a topic of Headrace's; name another one")
        key = self._key_converter.convert(batch.topic, None, batch.key)
        values = self._value_converter.convert_all(batch.topic, batch.schema, batch.values)
        self.session.write(
            batch.topic,
            key,
            values,
            partition=batch.partition,
            timestamp=batch.timestamp,
            headers=batch.headers,
        )
        return len(values)


def _said(error: HeadraceError, found: "Buried") -> str:
    if isinstance(error, PipelineError):
        letter = found.letter
        # The number is the object's where that was no part; a letter's own error says from where it is counted.
        known = letter.number is not None and PART not in letter.source_partition
        unit = "line" if letter.position is not None and letter.position.line else "record"
        error.located(
            Where(object=letter.object or None, position=f"{unit} {letter.number}" if known else None),
        )
    return str(error)


def _topic_of(config: SourceCommonConfig) -> str:
    if config.dead_letter_topic is None:
        raise ConfigError([Fault(LETTERS, None, "is required here: it names the topic of the dead letters")])
    return config.dead_letter_topic


def _fits(found: "Buried", pattern: str | None) -> bool:
    if pattern is None:
        return True
    letter = found.letter
    names = {letter.object, *map(str, letter.source_partition.values())}
    return any(fnmatchcase(name, pattern) for name in names)
