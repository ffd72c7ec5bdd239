"""What there is: the files that the paths mean, each once, in the order of their names."""

import os
from collections.abc import Callable, Iterator

import attrs

from headrace.framework.errors import PipelineError, RetriableError, SourceError, Where
from headrace.framework.naming import NameTemplate
from headrace.framework.stage import Stage
from headrace.framework.stop_rule import TimeLimit
from headrace.sources.files.config import FilesConfig
from headrace.sources.files.failures import as_ours
from headrace.sources.files.objects import FoundFile, is_storable, is_url
from headrace.sources.files.system import FileSystem, LocalPath

__all__ = ["Listed", "Lister"]

NO_TIME = "nobody says when it was modified, and stop.rule asks for that"
NOT_UTF_8 = "its name is not UTF-8, and could not be stored: rename it"


@attrs.define
class Listed:
    """What a listing has brought: the files to look at, and those left out, each with the reason.

    `lost` are the paths that cannot be listed for now, though they were before. `is_last` says that what is found later
    is not wanted.
    """

    files: list[FoundFile] = attrs.field(factory=list)
    left_out: list[tuple[FoundFile, str]] = attrs.field(factory=list)
    lost: tuple[str, ...] = ()
    is_last: bool = False


@attrs.define
class Lister:
    """Lists the paths again and again.

    A path that does not exist fails the first listing, unless `may_be_missing` says that it may come, or has been
    there. Later a file may go, and a folder that has gone is waited for, while the other paths are listed.
    """

    config: FilesConfig
    may_be_missing: Callable[[str], bool]
    _systems: dict[str, FileSystem] = attrs.field(factory=dict, init=False)
    _template: NameTemplate = attrs.field(init=False)
    _limit: TimeLimit = attrs.field(init=False)
    _has_listed: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._template = NameTemplate.parse(self.config.file_name_template)
        self._limit = TimeLimit.of(self.config.stop_rule)

    def list(self) -> Listed:
        """List everything once."""
        found: dict[str, FoundFile] = {}
        lost: list[str] = []
        is_last = self._limit.has_come
        for path in self.config.paths:
            system = self._systems.setdefault(path, self.config.system(path))
            try:
                found.update((file.path, file) for file in self._files_of(path, system))
            except RetriableError:
                if not self._has_listed:
                    raise
                lost.append(path)
        self._has_listed = True
        return attrs.evolve(self._sorted_out(found), lost=tuple(lost), is_last=is_last and not lost)

    def find_again(self, path: str) -> str:
        """A path that was lost, once it can be listed; until then `RetriableError`. From any thread."""
        for _ in self._files_of(path, self.config.system(path)):
            pass
        return path

    def _files_of(self, path: str, system: FileSystem) -> Iterator[FoundFile]:
        where = Where(stage=Stage.DISCOVER, connector=self.config.name, object=path)
        try:
            yield from system.find(path)
        except FileNotFoundError as error:
            self._missing(path, as_ours(error, where))
        except OSError as error:
            named = error.filename if isinstance(error.filename, str) else path
            raise as_ours(error, attrs.evolve(where, object=named)) from error
        except PipelineError as error:
            raise error.located(where) from error.__cause__

    def _missing(self, path: str, error: PipelineError) -> None:
        local = None if is_url(path) else LocalPath.of(path)
        may_be_a_file = local is None or (local.base == local.text and os.path.isdir(os.path.dirname(local.text)))  # noqa: PTH112, PTH120 - texts
        if not self._has_listed:
            if not (may_be_a_file and local is not None and self.may_be_missing(local.text)):
                raise SourceError(error.message, error.where) from error
        elif not may_be_a_file:
            raise RetriableError("the folder has gone: it is waited for", error.where) from error

    def _sorted_out(self, found: dict[str, FoundFile]) -> Listed:
        listed = Listed()
        archive = self.config.archive_folder
        for path in sorted(found):
            if archive is not None and path.startswith(f"{archive.rstrip('/')}/"):
                continue
            if not is_storable(path):
                listed.left_out.append((found[path], NOT_UTF_8))
            elif self._template.match(path) is not None:
                self._sort_by_time(found[path], listed)
        return listed

    def _sort_by_time(self, found: FoundFile, listed: Listed) -> None:
        if self._limit.ends_at is not None and not found.last_modified:
            listed.left_out.append((found, NO_TIME))
        elif self._limit.lets_in(found.last_modified):
            listed.files.append(found)
