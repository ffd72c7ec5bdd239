"""Entries, read again for those who replay dead letters."""

from collections.abc import Iterator

import attrs

from headrace.framework import registry
from headrace.framework.compat import override
from headrace.framework.dead_letter import DeadLetter
from headrace.framework.errors import ObjectVanishedError, Where
from headrace.framework.record import RecordBatch
from headrace.framework.replay import Replays
from headrace.framework.stage import Stage
from headrace.framework.tolerance import TOLERANCE, Tolerance
from headrace.sources.redis.client import RedisClient, connect
from headrace.sources.redis.config import RedisConfig
from headrace.sources.redis.entry import ID, LAST, STREAM, Place, RedisOffsetEntry, stream_key
from headrace.sources.redis.failures import redis_failures
from headrace.sources.redis.records import RecordMaker
from headrace.transformers.bytes import CHUNK_BYTES

__all__ = ["RedisReplays"]


@attrs.define
class RedisReplays(Replays):
    """Asks for each letter's entry by its id. Entries cannot be repaired; the configuration can."""

    config: RedisConfig
    _client: RedisClient = attrs.field(init=False)
    _maker: RecordMaker = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        transformer = registry.find("transformers", self.config.input_format)()
        chunk = str(self.config.transformer_max_buffer_size)
        transformer.configure({**self.config.props, CHUNK_BYTES: chunk, TOLERANCE: Tolerance.NONE.value})
        self._maker = RecordMaker(attrs.evolve(self.config, errors_tolerance=Tolerance.NONE), transformer)
        with redis_failures(Where(stage=Stage.READ)):
            self._client = connect(self.config.connection())

    @override
    def read(self, letter: DeadLetter) -> Iterator[RecordBatch]:
        key = stream_key(str(letter.source_partition[STREAM]))
        stream = str(letter.source_partition[STREAM])
        first, last = _range(RedisOffsetEntry(key, letter.source_offset))
        where = Where(stage=Stage.READ, object=stream, position="entry " + first.lstrip("("))
        with redis_failures(where):
            entries = self._client.xrange(stream, first, last, count=1)
        if not entries:
            raise ObjectVanishedError("the entry was trimmed or deleted", where)
        before = letter.position
        place = Place(within=before.inside if before else 0, records=before.records if before else 0)
        batch = self._maker.batch(RedisOffsetEntry(key, {}).at(place), entries)
        if letter.count is None and batch.source_offset.get(ID) != entries[0][0].decode():
            # A bad record ended the batch before the entry's end; as the first one it is raised.
            rest = attrs.evolve(place, within=place.within + len(batch.values))
            self._maker.batch(RedisOffsetEntry(key, {}).at(rest), entries)
        yield batch if letter.count is None else attrs.evolve(batch, values=batch.values[: letter.count])

    @override
    def close(self) -> None:
        self._client.close()


def _range(entry: RedisOffsetEntry) -> tuple[str, str]:
    """Between which ids the entry lies in which a record ends, by the offset behind that record."""
    after = entry.place()
    if after.within and after.inside is None:
        return f"({after.id}", "+"
    found = str(after.inside) if after.within else entry.get_string(LAST) or str(after.id)
    return found, found
