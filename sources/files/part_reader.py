"""Parts of files, as a task reads them."""

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

import attrs

from headrace.framework.errors import Where
from headrace.framework.parts import ENDED, PARTS
from headrace.framework.record import RecordBatch
from headrace.framework.stage import Stage
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.manager import OffsetManager
from headrace.sources.files.entry import CUT, FileOffsetEntry, file_key, file_part_key
from headrace.sources.files.failures import file_failures
from headrace.sources.files.fingerprint import LocalContent
from headrace.sources.files.objects import FoundFile
from headrace.sources.files.parts import is_still, part_entry
from headrace.sources.files.portion import Portions
from headrace.sources.files.splits import FilePart, FileSplit

__all__ = ["PartsOfFiles"]


@attrs.frozen
class PartsOfFiles:
    """Reads a part of a file from where its entry says to its end.

    A file that is no longer the one that was cut is told to `changed`: the enumerator begins all of it anew.
    """

    portions: Portions
    offsets: OffsetManager
    changed: Callable[[FoundFile], None]

    def read(self, split: FileSplit, part: FilePart) -> Iterator[RecordBatch]:
        """What is left of a part; the last item says that there is no more."""
        path = split.file.path
        with file_failures(Where(stage=Stage.READ, object=path)):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield from self._read(path, part, descriptor)
        finally:
            os.close(descriptor)

    def _read(self, path: str, part: FilePart, descriptor: int) -> Iterator[RecordBatch]:
        found, content = FoundFile.from_stat(path, os.fstat(descriptor)), LocalContent(descriptor)
        key = file_part_key(path, part.number)
        stored = self.offsets.get_entry(key, lambda known: part_entry(path, part, known))
        whole = self._stored(file_key(path))
        if whole is not None and whole.get_string(CUT) != part.cut:
            return  # the parts are joined, or the file was cut anew, since the plan was made
        if whole is not None and not is_still(whole, [stored], found, content):
            self.changed(found)
            return
        version = {} if whole is None else whole.version()
        entry = stored or FileOffsetEntry(key, {**version, PARTS: part.parts, CUT: part.cut})
        if entry.is_ended:
            return

        def opener() -> BinaryIO:
            return open(descriptor, "rb", buffering=0, closefd=False)

        yield from self.portions.records(
            entry,
            opener,
            part.size,
            end=part.size,
            tail=content.before,
            extent=part.extent,
            at_end=lambda offset: {**offset, ENDED: True},
        )

    def _stored(self, key: OffsetManagerKey) -> FileOffsetEntry | None:
        return self.offsets.get_entry(key, lambda known: FileOffsetEntry(key, known))
