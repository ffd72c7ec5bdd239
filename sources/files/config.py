"""What the user asks for."""

import enum
import glob
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import attrs

from headrace.framework import registry
from headrace.framework.compat import override
from headrace.framework.config import Boundary, SourceCommonConfig, boolean, member, names, option, text
from headrace.framework.errors import ConfigError, Fault
from headrace.framework.split_size import split_faults, split_notes, split_size_bytes
from headrace.framework.stop_rule import StopKind
from headrace.sources.files.entry import OverwritePolicy
from headrace.sources.files.objects import is_url
from headrace.sources.files.system import FileSystem, LocalFiles, LocalPath
from headrace.sources.files.urls import PATHS, UrlFiles, check_url

__all__ = ["STORAGE", "Cleanup", "FilesConfig"]

STORAGE = "files.storage."


class Cleanup(enum.StrEnum):
    """What becomes of a file once all of it is committed."""

    NONE = "none"
    ARCHIVE = "archive"
    DELETE = "delete"


@attrs.frozen(kw_only=True)
class FilesConfig(SourceCommonConfig):
    """The configuration of the source `files`."""

    PASSED_ON: ClassVar[tuple[str, ...]] = (STORAGE,)
    STOP_RULES: ClassVar[frozenset[StopKind]] = frozenset(StopKind)

    paths: tuple[str, ...] = option(
        PATHS,
        names(),
        doc="A comma list of paths, globs (`**` goes into folders) and fsspec URLs. A directory means the files in it, "
        "hidden ones left out. Every executor must see the same files under the same paths. What a URL's file system "
        "is to be made with stands under `files.storage.`.",
    )
    follow: bool = option(
        "files.follow",
        boolean(),
        default=False,
        doc="Whether files are followed while they grow: a last line waits for its end, and files that are rotated "
        "(renamed, or copied and truncated) within their folder are known again where they keep the beginning of their "
        "name. For local paths and formats of lines. Without it a last line is a record as it is.",
    )
    cleanup: Cleanup = option(
        "files.cleanup",
        member(Cleanup),
        default=Cleanup.NONE,
        doc="What becomes of a file once all of its records are committed, by whatever run.",
    )
    archive: str | None = option(
        "files.archive", text(), default=None, doc="The folder to which `files.cleanup=archive` moves files."
    )
    overwrite_policy: OverwritePolicy = option(
        "files.overwrite.policy",
        member(OverwritePolicy),
        default=OverwritePolicy.REREAD,
        doc="What becomes of a file that was overwritten since its first record was read. One to which lines were "
        "added is read on, and one that was only touched is left alone.",
    )
    split_size_bytes: int = split_size_bytes()

    @override
    def validate(self) -> Iterable[Fault]:
        yield from super().validate()
        if not self.paths:
            yield self.fault(PATHS, "is empty: name a path, a glob or a URL")
        yield from self._url_faults()
        yield from self._follow_faults()
        yield from self._cleanup_faults()
        yield from self._stop_faults()
        yield from split_faults(self, self.split_size_bytes)
        if self.follow and self.split_size_bytes:
            yield self.fault("split.size.bytes", "is of no use with files.follow: what grows is read by one task")

    @classmethod
    @override
    def notes(cls, props: Mapping[str, str]) -> Iterable[str]:
        yield from super().notes(props)
        yield from split_notes(props)

    def system(self, path: str) -> FileSystem:
        """The file system of a path."""
        return UrlFiles(self.under(STORAGE)) if is_url(path) else LocalFiles()

    @property
    def grows(self) -> bool:
        """Whether the format can be read on in a file that has grown."""
        return bool(registry.find("transformers", self.input_format).grows)

    @property
    def last_byte(self) -> int | None:
        """The byte of a file at which `stop.rule` ends the run; None if it is no matter of bytes."""
        rule = self.stop_rule
        return int(rule.position) if rule is not None and rule.kind is StopKind.POSITION else None

    @property
    def archive_folder(self) -> str | None:
        """The archive as files below it are called."""
        if self.archive is None or is_url(self.archive):
            return self.archive
        return LocalPath.of(self.archive).text

    def _url_faults(self) -> Iterator[Fault]:
        for path in filter(is_url, self.paths):
            try:
                check_url(path)
            except ConfigError as error:
                yield from error.faults

    def _follow_faults(self) -> Iterator[Fault]:
        if not self.follow:
            return
        if any(is_url(path) for path in self.paths):
            yield self.fault("files.follow", "follows local paths only: take the URLs out, or set it to false")
        if not self.grows:
            yield self.fault(
                "files.follow", f"needs a format of lines: {self.input_format} is read as a whole; set input.format"
            )
        if self.file_compression_type not in {"auto", "none"}:
            yield self.fault("files.follow", "follows plain files only: a compressed one does not grow")
        if self.cleanup is not Cleanup.NONE:
            yield self.fault("files.cleanup", "is of no use with files.follow: a file that is followed is not finished")

    def _stop_faults(self) -> Iterator[Fault]:
        rule = self.stop_rule
        if rule is not None and rule.kind is StopKind.TIME and self.follow:
            yield self.fault("stop.rule", "cannot be a time with files.follow: the lines of a file have none")
        if rule is None or rule.kind is not StopKind.POSITION:
            return
        if not (rule.position.isascii() and rule.position.isdigit()):
            yield self.fault("stop.rule", "must be a byte of a file, as in position:4096")
        if not self.grows:
            yield self.fault("stop.rule", f"needs a format of lines for a position: {self.input_format} is none")
        if self.split_size_bytes:
            yield self.fault("stop.rule", "cannot be a position with split.size.bytes: parts have no order")
        if self.transaction_boundary is Boundary.OBJECT:
            yield self.fault("stop.rule", "cannot cut a file with transaction.boundary=object: set interval or poll")

    def _cleanup_faults(self) -> Iterator[Fault]:
        if self.cleanup is Cleanup.ARCHIVE and self.archive is None:
            yield Fault("files.archive", None, "is required with files.cleanup=archive")
        if self.cleanup is not Cleanup.ARCHIVE and self.archive is not None:
            yield self.fault("files.archive", "is of no use without files.cleanup=archive")
        if self.archive is None:
            return
        if glob.has_magic(self.archive):
            yield self.fault("files.archive", "must be one folder, not a glob")
        if any(_scheme(path) != _scheme(self.archive) for path in self.paths):
            yield self.fault("files.archive", "must lie in the same file system as the files")


def _scheme(path: str) -> str:
    return path.partition("://")[0] if is_url(path) else ""
