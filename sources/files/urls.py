"""What lies behind a URL, by way of fsspec."""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, BinaryIO

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import ConfigError, Fault, Where
from headrace.framework.stage import Stage
from headrace.sources.files.failures import as_ours
from headrace.sources.files.objects import FoundFile
from headrace.sources.files.system import FileSystem

__all__ = ["PATHS", "UrlFiles", "check_url"]

PATHS = "files.paths"

TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
MAGIC = "*?["
VERSIONS = ("ETag", "etag", "md5", "contentHash")


def check_url(url: str) -> None:
    """Raise `ConfigError` unless fsspec is there, knows the scheme, and has what it needs for it."""
    scheme = url.partition("://")[0]
    try:
        import fsspec  # noqa: PLC0415 - optional: local paths need none of it

        fsspec.get_filesystem_class(scheme.rpartition("::")[2])
    except ImportError as error:
        remedy = "pip install fsspec" if error.name == "fsspec" else " ".join(str(error).split())
        raise ConfigError([Fault(PATHS, None, f"{scheme}:// needs what is not installed: {remedy}")]) from error
    except ValueError as error:
        raise ConfigError([Fault(PATHS, None, f"fsspec knows no {scheme}://: check the URL")]) from error


@attrs.frozen
class UrlFiles(FileSystem):
    """The files of any file system that fsspec knows; `options` are what its class is made with."""

    options: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    _listing: dict[str, Any] = attrs.field(factory=dict, init=False, repr=False, eq=False)

    @override
    def find(self, pattern: str) -> Iterator[FoundFile]:
        system, path = self._system(pattern)
        system.invalidate_cache()
        if any(sign in path for sign in MAGIC):
            for name, info in self._matches(pattern):
                with contextlib.suppress(FileNotFoundError):
                    yield from self._found(system, name, info)
            return
        info = system.info(path)
        if info["type"] != "directory":
            yield _as_found(system, info)
        else:
            for child in system.ls(path, detail=True):
                if child["type"] != "directory" and not _is_hidden(child["name"]):
                    yield _as_found(system, child)

    @override
    def look_up(self, path: str) -> FoundFile:
        system, name = self._system(path)
        system.invalidate_cache()
        return attrs.evolve(_as_found(system, system.info(name)), path=path)

    @override
    def open(self, path: str) -> BinaryIO:
        system, name = self._system(path)
        opened: BinaryIO = system.open(name, "rb")
        return opened

    @override
    def remove(self, path: str) -> None:
        system, name = self._system(path)
        system.rm_file(name)

    @override
    def move(self, path: str, folder: str) -> str:
        system, name = self._system(path)
        _, target_folder = self._system(folder)
        base = f"{target_folder.rstrip('/')}/{name.rpartition('/')[2]}"
        target, number = base, 0
        while system.exists(target):
            number += 1
            target = f"{base}.{number}"
        system.makedirs(target_folder, exist_ok=True)
        system.mv(name, target)
        return str(system.unstrip_protocol(target))

    def _matches(self, pattern: str) -> list[tuple[str, Mapping[str, Any]]]:
        _, path = self._system(pattern)
        base = path[: min(path.index(sign) for sign in MAGIC if sign in path)].rpartition("/")[0]
        if pattern not in self._listing:
            self._listing[pattern] = _loud(self._system(pattern, skip_instance_cache=True)[0], base)
        system = self._listing[pattern]
        system.invalidate_cache()
        found: dict[str, Mapping[str, Any]] = system.glob(path, detail=True)
        if not found:
            system.info(base)
        return sorted(found.items())

    def _found(self, system: Any, name: str, info: Mapping[str, Any]) -> Iterator[FoundFile]:
        if info["type"] != "directory":
            yield _as_found(system, info)
            return
        for child in system.ls(name, detail=True):
            if child["type"] != "directory" and not _is_hidden(child["name"]):
                yield _as_found(system, child)

    def _system(self, url: str, **options: bool) -> tuple[Any, str]:
        import fsspec  # noqa: PLC0415 - optional: local paths need none of it

        system, path = fsspec.core.url_to_fs(url, **self.options, **options)
        return system, path


def _loud(system: Any, base: str) -> Any:
    """Have a file system that nobody else uses say which folder below `base` a glob could not look into.

    fsspec passes over a folder with an `OSError`, and over no other error.
    """

    @contextlib.contextmanager
    def listed(path: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            raise
        except OSError as error:
            if base and not f"{path.rstrip('/')}/".startswith(f"{base}/"):
                raise
            raise as_ours(error, Where(stage=Stage.DISCOVER, object=system.unstrip_protocol(path))) from error

    def loud(path: str, *args: Any, **options: Any) -> Any:
        with listed(path):
            return quiet(path, *args, **options)

    async def loud_async(path: str, *args: Any, **options: Any) -> Any:
        with listed(path):
            return await quiet(path, *args, **options)

    name = "_ls" if system.async_impl else "ls"
    quiet = getattr(system, name)
    setattr(system, name, loud_async if system.async_impl else loud)
    return system


def _is_hidden(name: str) -> bool:
    return str(name).rpartition("/")[2].startswith(".")


def _as_found(system: Any, info: Mapping[str, Any]) -> FoundFile:
    etag = next((str(info[name]).strip('"') for name in VERSIONS if info.get(name)), "")
    return FoundFile(
        path=system.unstrip_protocol(info["name"]), size=info["size"] or 0, last_modified=_milliseconds(info), etag=etag
    )


def _milliseconds(info: Mapping[str, Any]) -> int:
    found = next((info[name] for name in TIMES if info.get(name) is not None), None)
    if isinstance(found, str):
        try:
            found = datetime.fromisoformat(found)
        except ValueError:
            return 0
    if isinstance(found, datetime):
        return round(found.timestamp() * 1000)
    return round(found * 1000) if isinstance(found, int | float) else 0
