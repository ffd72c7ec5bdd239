"""The files source's side of the conformance suite: a folder per test, as it is or behind a URL that can break."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.testing.faulty_files import BROKEN, HOLD, PASS, PROTOCOL, REFUSED, FaultScript
from headrace.testing.source_harness import SourceHarness

__all__ = ["FilesHarness"]


@attrs.define
class FilesHarness(SourceHarness):
    """A folder of files of JSON lines; with `by_url` the source reaches them by fsspec, and its reads can stumble."""

    by_url: bool = False
    folder: Path = attrs.field(factory=lambda: Path(tempfile.mkdtemp(prefix="headrace-files-")), init=False)

    @override
    def prepare(self, name: str) -> Mapping[str, str]:
        return {"connector.class": "files", "input.format": "jsonl", "files.paths": self._name_of(self.folder)}

    @override
    def add(self, piece: str, records: Sequence[bytes]) -> None:
        # Written beside its place first: a listing must not find half a file.
        unfinished = self.folder / f".{piece}"
        unfinished.write_bytes(b"".join(record + b"\n" for record in records))
        unfinished.rename(self.folder / piece)

    @override
    def partition(self, piece: str) -> Mapping[str, Any]:
        return {"filename": self._name_of(self.folder / piece)}

    @override
    def overwrite_policy(self, policy: str) -> Mapping[str, str]:
        return {"files.overwrite.policy": policy}

    @override
    def stumble(self, times: int) -> None:
        """In turn: refused, broken within the file."""
        if not self.by_url:
            raise NotImplementedError("local files do not stumble")
        FaultScript(self.folder).write(*((REFUSED, BROKEN)[number % 2] for number in range(times)))

    @override
    @contextmanager
    def holding(self, *, after: int) -> Iterator[None]:
        if not self.by_url:
            raise NotImplementedError("local files cannot be held back")
        script = FaultScript(self.folder)
        script.write(*[PASS] * after, *[HOLD] * 100)
        try:
            yield
        finally:
            script.forget()

    @override
    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _name_of(self, path: Path) -> str:
        return f"{PROTOCOL}://{path}" if self.by_url else str(path)
