"""What becomes of files that are done with: only after the commit, and only of what the commit spoke of."""

import logging
from collections.abc import Iterable

import attrs

from headrace.framework.errors import ObjectVanishedError, PipelineError, Where
from headrace.framework.stage import Stage
from headrace.sources.files.config import Cleanup, FilesConfig
from headrace.sources.files.entry import FileOffsetEntry
from headrace.sources.files.failures import file_failures
from headrace.sources.files.objects import is_url

__all__ = ["Cleaner"]

log = logging.getLogger(__name__)


@attrs.define
class Cleaner:
    """Archives or deletes the files whose committed entries say that they were read to their end.

    Used by one thread at a time. What cannot be cleaned up is left where it is, said once, and tried again at the
    next opportunity; it fails nobody.
    """

    config: FilesConfig
    _told: set[str] = attrs.field(factory=set, init=False)

    @property
    def is_wanted(self) -> bool:
        """Whether there is anything to do at all."""
        return self.config.cleanup is not Cleanup.NONE

    def clean(self, entries: Iterable[FileOffsetEntry]) -> list[str]:
        """Clean up the files of these committed entries; the paths that need no further look."""
        return [entry.path for entry in entries if self._is_clean(entry)]

    def _is_clean(self, entry: FileOffsetEntry) -> bool:
        where = Where(stage=Stage.COMMIT, connector=self.config.name, object=entry.path)
        try:
            with file_failures(where):
                return self._clean(entry)
        except ObjectVanishedError:
            log.debug("%s: it has gone already", where)
        except PipelineError as error:
            if entry.path not in self._told:
                self._told.add(entry.path)
                log.warning("%s: files.cleanup=%s failed, the file stays: %s", where, self.config.cleanup, error)
            return False
        return True

    def _clean(self, entry: FileOffsetEntry) -> bool:
        system = self.config.system(entry.path)
        found = system.look_up(entry.path)
        if not (entry.is_complete and entry.is_version(found)):
            return False  # it was overwritten since: what is there now has not been read
        if self.config.cleanup is Cleanup.ARCHIVE and self.config.archive is not None:
            archive = self.config.archive if is_url(self.config.archive) else (self.config.archive_folder or "")
            log.info("%s: archived as %s", entry.path, system.move(entry.path, archive))
        else:
            system.remove(entry.path)
            log.info("%s: deleted, all of it is committed", entry.path)
        return True
