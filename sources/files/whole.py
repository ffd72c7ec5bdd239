"""Files that are there as a whole when they are found."""

import io
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import attrs

from headrace.framework.errors import ObjectChangedError, RetriableError, Where
from headrace.framework.record import RecordBatch
from headrace.framework.stage import Stage
from headrace.sources.files.config import FilesConfig
from headrace.sources.files.entry import COMPLETE, SIZE, TAIL, Action, FileOffsetEntry, file_key, what_to_do
from headrace.sources.files.failures import file_failures
from headrace.sources.files.fingerprint import Content, HeldContent, LocalContent
from headrace.sources.files.objects import FoundFile, is_url
from headrace.sources.files.portion import Portions
from headrace.sources.files.splits import FileSplit

__all__ = ["WholeFiles"]

HELD_BYTES = 64 * 1024
"""Files up to this size are read at once: each call of the system lets other threads have the interpreter."""


@attrs.frozen
class WholeFiles:
    """Reads a file from where its entry says to its end, and marks it as finished."""

    portions: Portions
    stored: Callable[[str], FileOffsetEntry | None]
    leave_out: Callable[[str], None]
    config: FilesConfig

    def read(self, split: FileSplit) -> Iterator[RecordBatch]:
        """What is left of a file; the last item says that there is no more."""
        path = split.file.path
        if is_url(path):
            yield from self._read_url(split.file)
            return
        with file_failures(Where(stage=Stage.READ, object=path)):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield from self._read_local(path, descriptor)
        finally:
            os.close(descriptor)

    def _read_local(self, path: str, descriptor: int) -> Iterator[RecordBatch]:
        found = FoundFile.from_stat(path, os.fstat(descriptor))
        held = _held(found, descriptor)
        content = LocalContent(descriptor) if held is None else HeldContent(held)
        entry = self._entry(found, content)
        if entry is None:
            return

        def opener() -> BinaryIO:
            return open(descriptor, "rb", buffering=0, closefd=False) if held is None else io.BytesIO(held)

        def at_end(offset: dict[str, Any]) -> dict[str, Any]:
            return _finished(offset, _size_read(found, descriptor))

        yield from self.portions.records(entry, opener, found.size, tail=content.before, at_end=at_end)

    def _read_url(self, found: FoundFile) -> Iterator[RecordBatch]:
        system = self.config.system(found.path)
        entry = self._entry(found, None)
        if entry is None:
            return

        def opener() -> BinaryIO:
            with file_failures(Where(stage=Stage.READ, object=found.path)):
                return system.open(found.path)

        yield from self.portions.records(entry, opener, found.size, at_end=lambda offset: _finished(offset, found.size))

    def _entry(self, found: FoundFile, content: Content | None) -> FileOffsetEntry | None:
        """The entry to read on from, or None if there is nothing to read."""
        stored = self.stored(found.path)
        grows = self.portions.transformer.grows
        decision = what_to_do(stored, found, content, self.config.overwrite_policy, grows=grows)
        match decision.action:
            case Action.FINISHED:
                return None
            case Action.IGNORE:
                self.leave_out(f"{found.path} is left out: it was overwritten (files.overwrite.policy)")
                return None
            case Action.FAIL:
                raise ObjectChangedError(
                    "the file was overwritten after its first record was read, and files.overwrite.policy is fail",
                    Where(stage=Stage.READ, object=found.path),
                )
        base = stored if stored is not None and decision.action is Action.READ else None
        entry = base or FileOffsetEntry(file_key(found.path), {})
        tail = entry.get_string(TAIL)
        return entry.from_properties(entry.properties_at(decision.position, tail=tail)).of_version(found, content)


def _held(found: FoundFile, descriptor: int) -> bytes | None:
    """All of a small file, in one call; None where it is not small, or not as long any more as it was found."""
    if found.size > HELD_BYTES:
        return None
    with file_failures(Where(stage=Stage.READ, object=found.path)):
        data = os.read(descriptor, HELD_BYTES + 1)
        if len(data) == found.size:
            return data
        os.lseek(descriptor, 0, os.SEEK_SET)
    return None


def _size_read(found: FoundFile, descriptor: int) -> int:
    """How long a file was that is done; what is added later is seen by the next listing.

    Not every format reads a file to its last byte, and none does where the rest of it was passed over.
    """
    read, size = max(found.size, os.lseek(descriptor, 0, os.SEEK_CUR)), os.fstat(descriptor).st_size
    if size < read:
        # Its last lines may be torn: nothing of them is kept where the transaction is the whole file.
        message = "the file was cut while it was read: it is looked at again (files.overwrite.policy)"
        raise RetriableError(message, Where(stage=Stage.READ, object=found.path, position=f"byte {size}"))
    return read


def _finished(offset: dict[str, Any], size: int) -> dict[str, Any]:
    return {**offset, COMPLETE: True, **({SIZE: size} if SIZE in offset else {})}
