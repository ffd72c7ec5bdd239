"""Compressed objects as streams of what is in them.

With `auto` the content decides and the name may object: an object is decompressed if its first bytes are the mark of
a compression. So a gzipped `events.jsonl` is decompressed and a plain `events.gz` is taken as it is. If the name ends
like another compression's, as that of a `data.gz` that holds Zstandard, it is an error: nobody knows what is meant. An
object that is shorter than the mark of the compression that its name promises is cut, not plain. Not all Snappy has a
mark: what is named like it is taken for it, and is an error where it can be told to be no form of it that is known; but
containers of Avro and Parquet, which have Snappy inside, have marks of their own.

Several compressed members one after the other are one content, as the tools that write them have it. Whatever does
not end where its format says it ends is an error: so is anything behind it, but for the zeros that pad gzip and xz.
An object without bytes holds nothing, whatever its name says.
"""

from collections.abc import Callable, Iterator

import attrs

from headrace.framework.errors import ConfigError, DataError, Fault, Where
from headrace.framework.stage import Stage
from headrace.transformers.base import ByteStream
from headrace.transformers.members import (
    Decoder,
    bz2_decoder,
    decompressed_members,
    gzip_decoder,
    lz4_decoder,
    xz_decoder,
    zstd_decoder,
)
from headrace.transformers.seeking import Cursor, SeekableStream, is_seekable
from headrace.transformers.snappy import FRAMED_MARK, XERIAL_MARK, decompressed_blocks, snappy_library

__all__ = [
    "AUTO",
    "COMPRESSION",
    "KINDS",
    "NONE",
    "TOO_MUCH_FROM",
    "OpenedStream",
    "bounded",
    "check_kind",
    "detect",
    "kind_by_name",
    "leave_out",
    "open_decompressed",
]

COMPRESSION = "file.compression.type"

AUTO, NONE = "auto", "none"

TOO_MUCH_FROM = 64 * 1024 * 1024
"""How many bytes may come out of any compressed data, however little that is."""


@attrs.frozen
class _Codec:
    """How a compression is told, and undone; `check` fails where its library is missing."""

    suffixes: tuple[str, ...]
    marks: tuple[bytes, ...]
    pieces: Callable[[ByteStream], Iterator[bytes]]
    check: Callable[[], object] = lambda: None


def _members(kind: str, decoder: Callable[[], Decoder]) -> Callable[[ByteStream], Iterator[bytes]]:
    return lambda stream: decompressed_members(stream, kind, decoder)


_SKIPPABLE = tuple(bytes([number]) + b"\x2a\x4d\x18" for number in range(0x50, 0x60))
"""With what frames begin that are no content: such as an index, of which zstd and lz4 have several in front."""

_CODECS = {
    "gzip": _Codec((".gz", ".gzip"), (b"\x1f\x8b\x08",), _members("gzip", gzip_decoder)),
    "bz2": _Codec(
        (".bz2",),
        tuple(b"BZh%d%b" % (level, block) for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")),
        _members("bz2", bz2_decoder),
    ),
    "xz": _Codec((".xz",), (b"\xfd7zXZ\x00",), _members("xz", xz_decoder)),
    "zstd": _Codec((".zst", ".zstd"), (b"\x28\xb5\x2f\xfd", *_SKIPPABLE), _members("zstd", zstd_decoder), zstd_decoder),
    "snappy": _Codec((".snappy", ".sz"), (FRAMED_MARK, XERIAL_MARK), decompressed_blocks, snappy_library),
    "lz4": _Codec((".lz4",), (b"\x04\x22\x4d\x18", *_SKIPPABLE), _members("lz4", lz4_decoder), lz4_decoder),
}

KINDS = (AUTO, NONE, *_CODECS)
"""What `file.compression.type` may be."""

_CONTAINERS = (b"Obj\x01", b"PAR1")

_KIND_BY_SUFFIX = {suffix: kind for kind, codec in _CODECS.items() for suffix in codec.suffixes}
_FIRST_BYTES = {mark[:1] for codec in _CODECS.values() for mark in codec.marks}
_LONGEST_MARK = max(len(mark) for codec in _CODECS.values() for mark in codec.marks)


def check_kind(kind: str, *, name: str | None = None) -> None:
    """Raise `ConfigError` for what is no compression, or lacks its library here.

    `name` is the object in which the compression was found; without it, the configuration has asked for it.
    """
    if kind in {AUTO, NONE}:
        return
    codec = _CODECS.get(kind)
    if codec is None:
        raise ConfigError([Fault(COMPRESSION, kind, f"must be one of {', '.join(KINDS)}")])
    found = f"{name} is {kind}: " if name else ""
    try:
        codec.check()
    except ImportError as error:
        message = f"{found}{kind} needs {error.name}, which is not installed: pip install 'headrace[avro]'"
        raise ConfigError([Fault(COMPRESSION, kind, message)]) from error


def kind_by_name(name: str) -> str:
    """The compression that the end of an object's name speaks of, or `none`."""
    return _KIND_BY_SUFFIX.get(name[name.rfind(".") :].lower(), NONE)


def detect(name: str, head: bytes) -> str:
    """The compression of an object with that name and those first bytes, or `none`; see the module for the rule.

    Where the two speak of two compressions it is that of the name: what is opened by it is an error at its first byte.
    `head` is the whole object where it is shorter than 16 bytes.
    """
    named = kind_by_name(name)
    found = _kind_by_mark(head, named)
    if found != NONE:
        return found if named == NONE else named
    if named == "snappy" and head and not head.startswith(_CONTAINERS):
        return named
    if named != NONE and head and any(mark.startswith(head) for mark in _CODECS[named].marks):
        return named
    return NONE


def _kind_by_mark(head: bytes, named: str) -> str:
    """The compression that those first bytes speak of, or `none`; that of the name where they speak of several."""
    if head[:1] not in _FIRST_BYTES:
        return NONE
    found = [kind for kind, codec in _CODECS.items() if head.startswith(codec.marks)]
    return named if named in found else next(iter(found), NONE)


@attrs.frozen
class OpenedStream:
    """What is in an object; `kind` is the compression that was undone, or `none`."""

    kind: str
    _stream: ByteStream

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, and none at the clean end only."""
        return self._stream.read(size)


@attrs.frozen
class _SeekableOpened(OpenedStream):
    """The same of an object that was not compressed, in which one can go about."""

    _stream: SeekableStream

    @property
    def size(self) -> int:
        return self._stream.size

    def go_to(self, byte: int, /, *, wanted: int | None = None) -> None:
        self._stream.go_to(byte, wanted=wanted)


def open_decompressed(
    stream: ByteStream, name: str, kind: str = AUTO, *, skip: int = 0, max_ratio: int = 0
) -> OpenedStream:
    """What is in the object `name`, whose first byte is the stream's first.

    Memory is bounded, however well the object is compressed. With `skip`, that many bytes of the content are left
    out: inside a compressed object they are read, for there is no other way; elsewhere the stream is asked to go
    there, if it can. What is opened is a `SeekableStream` if `stream` is one and nothing was to undo. The stream's own
    errors pass through; damage is a `DataError` with the place in the content, after everything before it was given
    out, and so is content that is more than `max_ratio` times as large as what it was compressed to.

    With `auto` the first bytes are read at once. `ConfigError` as `check_kind` has it, also for what `auto` found.
    """
    check_kind(kind)
    if kind == AUTO:
        head = _head(stream)
        kind = detect(name, head)
        check_kind(kind, name=name)
        stream = _rejoined(head, stream)
        found = _kind_by_mark(head, kind)
        if found not in {NONE, kind}:
            opened = OpenedStream(kind, _PieceStream(iter(()), failure=_contradiction(kind, found)))
            leave_out(opened, skip)
            return opened
    codec = _CODECS.get(kind)
    if codec:
        stream = _PieceStream(bounded(stream, codec.pieces, kind, max_ratio))
    opened = _SeekableOpened(kind, stream) if is_seekable(stream) else OpenedStream(kind, stream)
    leave_out(opened, skip)
    return opened


def _contradiction(named: str, found: str) -> DataError:
    message = f"it is {found} by its first bytes and {named} by its name: rename it, or set {COMPRESSION}"
    return DataError(message, Where(stage=Stage.TRANSFORM, position="byte 0"))


def leave_out(opened: OpenedStream, size: int) -> None:
    """Go on behind the first `size` bytes of the content; fewer are a `DataError`: the stored position is beyond."""
    if size:
        Cursor(opened).go_to(size)


def bounded(
    stream: ByteStream, pieces: Callable[[ByteStream], Iterator[bytes]], kind: str, max_ratio: int
) -> Iterator[bytes]:
    """What `pieces` makes of a stream, until it is more than 64 MB and more than `max_ratio` times what was read."""
    taken = Cursor(stream)
    given = 0
    for piece in pieces(taken):
        given += len(piece)
        if max_ratio and given > max(TOO_MUCH_FROM, max_ratio * taken.position):
            message = (
                f"{taken.position} bytes of {kind} data hold more than {max_ratio} times as many: set "
                "max.decompression.ratio higher if that is meant, or take the object away"
            )
            raise DataError(message, Where(stage=Stage.TRANSFORM, position=f"byte {given - len(piece)}"))
        yield piece


def _head(stream: ByteStream) -> bytes:
    head = b""
    while len(head) < _LONGEST_MARK and (data := stream.read(_LONGEST_MARK - len(head))):
        head += data
    return head


@attrs.define
class _Rejoined:
    """A stream with its first bytes put back."""

    _head: bytes
    _stream: ByteStream

    def read(self, size: int, /) -> bytes:
        if not self._head:
            return self._stream.read(size)
        head, self._head = self._head[:size], self._head[size:]
        return head


@attrs.define
class _SeekableRejoined(_Rejoined):
    """The same, where one can go about."""

    _stream: SeekableStream

    @property
    def size(self) -> int:
        return self._stream.size

    def go_to(self, byte: int, /, *, wanted: int | None = None) -> None:
        self._head = b""
        self._stream.go_to(byte, wanted=wanted)


def _rejoined(head: bytes, stream: ByteStream) -> ByteStream:
    return _SeekableRejoined(head, stream) if is_seekable(stream) else _Rejoined(head, stream)


@attrs.define
class _PieceStream:
    """Pieces as a stream. What came before an error is given out first; then it is raised, at every read."""

    _pieces: Iterator[bytes]
    _held: bytes = b""
    _failure: Exception | None = None

    def read(self, size: int, /) -> bytes:
        parts: list[bytes] = []
        left = size
        while left and (self._held or self._fill()):
            part, self._held = self._held[:left], self._held[left:]
            parts.append(part)
            left -= len(part)
        if self._failure and not parts:
            raise self._failure
        return b"".join(parts)

    def _fill(self) -> bool:
        if self._failure is None:
            try:
                self._held = next(self._pieces, b"")
            except Exception as error:  # noqa: BLE001 - whatever it is: the read after this one raises it
                self._failure = error
        return bool(self._held)
