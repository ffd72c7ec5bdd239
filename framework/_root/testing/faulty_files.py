"""Local files behind a URL, `headrace-faulty://<path>`, that stumble as a script says: for whatever process reads them.

The script lies beside the files, so that it is the same for every process: each opening of a file takes one line off
it, and does what that says. fsspec finds the file system by the package's metadata, so it needs an installed package.
"""

import errno
import threading
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["BROKEN", "HOLD", "PASS", "PROTOCOL", "REFUSED", "STUCK", "FaultScript"]

PROTOCOL = "headrace-faulty"

PASS = "pass"  # noqa: S105 - what an opening does
REFUSED = "refused"
BROKEN = "broken"
HOLD = "hold"
STUCK = "stuck"

SCRIPT = ".faults"
HELD_S = 120.0
LOOK_EVERY_S = 0.01
FAILING_AFTER = 700

_MAKING = threading.Lock()


@attrs.frozen
class FaultScript:
    """What the next openings of the files in a folder do, in the order in which they come.

    `PASS` opens the file; `REFUSED` fails at once, `BROKEN` after some bytes, both in a way that another attempt
    mends; `HOLD` waits for as long as there is a script, before the file is open, and `STUCK` after some bytes of it.
    """

    folder: Path

    @property
    def _place(self) -> Path:
        return self.folder / SCRIPT

    def write(self, *faults: str) -> None:
        """Begin a script."""
        self._place.mkdir(exist_ok=True)
        for number, fault in enumerate(faults):
            (self._place / f"{number:04}-{fault}").touch()

    def forget(self) -> None:
        """End it: what is held goes on."""
        for line in self._lines():
            (self._place / line).unlink(missing_ok=True)
        if self._place.exists():
            self._place.rmdir()

    def act(self) -> str:
        """Take the next line off the script and do what it says; what is left to do for the caller."""
        for line in self._lines():
            try:
                (self._place / line).unlink()
            except FileNotFoundError:
                continue  # another process was quicker
            fault = line.partition("-")[2]
            if fault == REFUSED:
                raise OSError(errno.EIO, "the file system was told to refuse")
            if fault == HOLD:
                self.hold()
            return fault
        return PASS

    def hold(self) -> None:
        """Wait for the end of the script."""
        deadline = time.monotonic() + HELD_S
        while self._place.exists() and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)

    def _lines(self) -> "Sequence[str]":
        return sorted(line.name for line in self._place.iterdir()) if self._place.exists() else []


@cache
def _file_system() -> type[Any]:
    from fsspec.implementations.local import LocalFileSystem  # noqa: PLC0415 - of the extra `dev`

    class FaultyFileSystem(LocalFileSystem):  # type: ignore[misc] # fsspec has no types
        """What `FaultScript` scripts."""

        protocol = PROTOCOL

        @classmethod
        def _strip_protocol(cls, path: Any) -> str:
            return str(LocalFileSystem._strip_protocol(str(path).removeprefix(f"{PROTOCOL}://")))  # noqa: SLF001 - fsspec's way

        def unstrip_protocol(self, name: str) -> str:
            return f"{PROTOCOL}://{self._strip_protocol(name)}"

        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            script = FaultScript(Path(path).parent)
            fault = script.act()
            opened = super()._open(path, mode, **options)
            ends: dict[str, Callable[[], None]] = {BROKEN: _break, STUCK: script.hold}
            return _FailingFile(opened, ends[fault]) if fault in ends else opened

    return FaultyFileSystem


def __getattr__(name: str) -> Any:
    if name == "FaultyFileSystem":
        with _MAKING:  # one class, though threads ask at once: fsspec refuses a second
            return _file_system()
    raise AttributeError(f"module {__name__} has no attribute {name}")


def _break() -> None:
    raise OSError(errno.EIO, "the file system was told to break")


@attrs.define
class _FailingFile:
    """A file whose reading comes to some end of its own."""

    _opened: Any
    _end: "Callable[[], None]"
    _left: int = FAILING_AFTER

    def read(self, size: int) -> bytes:
        data: bytes = self._opened.read(min(size, self._left))
        if not data:
            self._end()
            data = self._opened.read(size)
        self._left = max(0, self._left - len(data))
        return data

    def seek(self, position: int) -> None:
        self._opened.seek(position)

    def close(self) -> None:
        self._opened.close()
