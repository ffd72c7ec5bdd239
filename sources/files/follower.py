"""Files that are read while they grow, and read to their end when they are rotated."""

import logging
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

import attrs

from headrace.framework.config import DataLoss
from headrace.framework.errors import SourceError, Where
from headrace.framework.record import RecordBatch
from headrace.framework.stage import Stage
from headrace.sources.files.config import FilesConfig
from headrace.sources.files.entry import COMPLETE, POSITION, TAIL, FileOffsetEntry, file_key
from headrace.sources.files.following import Family, OpenFile
from headrace.sources.files.portion import Portions
from headrace.sources.files.splits import FileSplit
from headrace.sources.files.stream import end_of_lines
from headrace.transformers.base import Position
from headrace.transformers.compression import NONE, detect

__all__ = ["Follower"]

log = logging.getLogger(__name__)

MARK_OF_COMPRESSION = 16


@attrs.frozen
class Follower:
    """Reads whole lines up to where a file ends right now.

    Where the name has another file than the one that was read, what is left of that is read first, wherever it is
    within its family, and stored under the name that it has now: before anything of the new one goes out. So nothing
    is forgotten whenever the task dies.
    """

    portions: Portions
    stored: Callable[[str], FileOffsetEntry | None]
    leave_out: Callable[[str], None]
    config: FilesConfig

    def follow(self, split: FileSplit) -> Iterator[RecordBatch]:
        """What there is to read of a file, and of what it was before."""
        family = Family((split.file.path, *split.family), self.stored)
        file = OpenFile.of(split.file.path)
        try:
            if file is None:
                yield from self._settle_missing(split, family)
            elif self._is_compressed(file):
                self.leave_out(f"{file.found.path} is left out: a compressed file is not followed (files.follow)")
            else:
                yield from self._follow(split, family, file)
        finally:
            if file is not None:
                file.close()

    def _settle_missing(self, split: FileSplit, family: Family) -> Iterator[RecordBatch]:
        entry = self.stored(split.file.path)
        if entry is not None:
            yield from self._hand_on(entry, family, frozenset())

    def _follow(self, split: FileSplit, family: Family, file: OpenFile) -> Iterator[RecordBatch]:
        path = file.found.path
        entry = self.stored(path)
        if entry is not None and entry.is_blank:
            entry = None
        if entry is not None and not family.goes_on(entry, file):
            yield from self._hand_on(entry, family, frozenset())
            entry = None
        if entry is None and (past := family.past_of(file)) is not None:
            yield from self._settle_past(past, family)
            return
        yield from self._rest(entry or FileOffsetEntry(file_key(path), {}), file, end=split.end)

    def _settle_past(self, past: FileOffsetEntry, family: Family) -> Iterator[RecordBatch]:
        """A file is what another name stood for: that name's progress is handed on, unless it still is there."""
        original = OpenFile.of(past.path)
        try:
            if original is None or not family.goes_on(past, original):
                yield from self._hand_on(past, family, frozenset())
        finally:
            if original is not None:
                original.close()

    def _hand_on(self, entry: FileOffsetEntry, family: Family, seen: frozenset[str]) -> Iterator[RecordBatch]:
        """Read the rest of the file that an entry speaks of, under the name that it has now."""
        place = family.find(entry, but=entry.path)
        file = None if place is None else OpenFile.of(place)
        if place is None or file is None:
            self._lose(entry)
            yield from _settled(entry)
            return
        try:
            there = self.stored(place)
            is_the_same = there is not None and (file.is_of_inode(there) or file.has_what_was_read(there))
            if there is not None and not is_the_same and place not in seen:
                yield from self._hand_on(there, family, seen | {entry.path, place})
            # Its progress may stand under several names: a run may have died, or the file moved on, in between.
            moved = family.furthest(file, entry).at(place)
            if there is None or moved.get_properties() != there.get_properties() or not moved.is_complete:
                log.info("%s: what was %s is %s now, and is read to its end", self.config.name, entry.path, place)
                yield from self._rest(moved, file, end=None, is_final=True)
        finally:
            file.close()
        yield from _settled(entry)

    def _rest(
        self, entry: FileOffsetEntry, file: OpenFile, *, end: int | None, is_final: bool = False
    ) -> Iterator[RecordBatch]:
        size = os.fstat(file.descriptor).st_size if is_final else file.found.size
        limit = size if end is None else min(size, end)
        if not is_final:
            limit = end_of_lines(file.descriptor, entry.byte, limit)
        if limit <= entry.byte and not is_final:
            return

        def opener() -> BinaryIO:
            os.lseek(file.descriptor, 0, os.SEEK_SET)
            return open(file.descriptor, "rb", buffering=0, closefd=False)

        known = entry.from_properties(entry.properties_at(entry.position(), tail=entry.get_string(TAIL))).of_version(
            attrs.evolve(file.found, size=size), file.content
        )
        for batch in self.portions.records(known, opener, size, end=limit, tail=file.content.before):
            if not batch.is_empty:
                yield batch
            elif is_final or batch.source_offset[POSITION] > entry.byte:
                # Blank lines alone move the place as well.
                offset = {**batch.source_offset, COMPLETE: True} if is_final else batch.source_offset
                yield attrs.evolve(batch, source_offset=offset)

    def _lose(self, entry: FileOffsetEntry) -> None:
        """What a name stood for is nowhere to be found."""
        where = Where(stage=Stage.READ, object=entry.path, position=f"byte {entry.byte}")
        if entry.unread == 0:
            log.info("%s: it was truncated or has gone; all that had been seen of it was read", where)
            return
        said = f"it was truncated or has gone, {entry.unread} bytes before its end that had been seen"
        if self.config.data_loss is DataLoss.FAIL:
            raise SourceError(f"{said}: restore it beside its name, or set data.loss=continue", where)
        self.leave_out(f"{where}: {said}")

    @staticmethod
    def _is_compressed(file: OpenFile) -> bool:
        return detect(file.found.path, os.pread(file.descriptor, MARK_OF_COMPRESSION, 0)) != NONE


def _settled(entry: FileOffsetEntry) -> Iterator[RecordBatch]:
    """Store under an entry's own name that nothing of it is read: what it spoke of has another name now, or is gone."""
    yield RecordBatch(
        source_partition=entry.get_manager_key().mapping,
        source_offset=FileOffsetEntry(entry.get_manager_key(), {}).properties_at(Position()),
        topic=entry.path,
        values=(),
    )
