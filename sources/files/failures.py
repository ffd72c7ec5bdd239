"""What the file system says, in our words: whether another attempt can mend it, and if not, what to do."""

import contextlib
import getpass
from collections.abc import Iterator

from headrace.framework.errors import ObjectVanishedError, PipelineError, RetriableError, SourceError, Where

__all__ = ["as_ours", "file_failures"]


@contextlib.contextmanager
def file_failures(where: Where) -> Iterator[None]:
    """Raise an `OSError` of the block as a `SourceError` or a `RetriableError` at `where`, with its cause."""
    try:
        yield
    except OSError as error:
        raise as_ours(error, where) from error


def as_ours(error: OSError, where: Where) -> PipelineError:
    """What a system's error at `where` is to us."""
    match error:
        case FileNotFoundError():
            return ObjectVanishedError("there is no such file or directory: check files.paths", where)
        case PermissionError():
            return SourceError(f"{_user()} may not read it: allow that user to, or run as another one", where)
        case IsADirectoryError() | NotADirectoryError():
            return SourceError(f"{_said(error)}: check files.paths", where)
        case _:
            return RetriableError(f"the file system fails: check it if it lasts ({_said(error)})", where)


def _said(error: OSError) -> str:
    return " ".join((error.strerror or str(error) or type(error).__name__).split())


def _user() -> str:
    try:
        return f"the user {getpass.getuser()}"
    except (KeyError, OSError):
        return "the user of this process"
