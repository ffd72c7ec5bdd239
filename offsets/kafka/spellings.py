"""Which keys of the topic speak of one source partition, in whatever order and form they were written."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from headrace.framework.errors import MalformedOffsetError
from headrace.offsets.codec import decode_key, encode_key
from headrace.offsets.key import OffsetManagerKey

__all__ = ["Spellings"]


def _ignore(error: MalformedOffsetError) -> None:
    """Somebody else says it."""


@attrs.frozen(repr=False)
class Spellings:
    """The keys of one connector by the source partition that they name; all of them parsed once.

    Kept as bytes, because there may be a million.
    """

    connector: str
    _keys: Mapping[bytes, tuple[bytes, ...]]

    @classmethod
    def of(
        cls, connector: str, keys: Iterable[bytes], on_malformed: Callable[[MalformedOffsetError], None] = _ignore
    ) -> "Spellings":
        """Sort `keys`; one that names no source partition goes to `on_malformed`."""
        found: dict[bytes, tuple[bytes, ...]] = {}
        for raw in keys:
            try:
                normal = _normal(connector, decode_key(raw)[1])
            except MalformedOffsetError as error:
                on_malformed(error)
            else:
                # Most keys are as we write them: the same object twice costs nothing.
                name = raw if normal == raw else normal
                found[name] = (*found.get(name, ()), raw)
        return cls(connector, found)

    def of_key(self, key: OffsetManagerKey) -> tuple[bytes, ...]:
        """The keys under which a source partition stands; none if it does not."""
        return self._keys.get(_normal(self.connector, key), ())

    def __iter__(self) -> Iterator[tuple[OffsetManagerKey, tuple[bytes, ...]]]:
        """Each source partition, its names as in the first of its keys, with all of these."""
        for keys in self._keys.values():
            yield decode_key(keys[0])[1], keys

    @property
    def twins(self) -> int:
        """How many keys there are beyond one for each source partition."""
        return sum(len(keys) - 1 for keys in self._keys.values())


def _normal(connector: str, key: OffsetManagerKey) -> bytes:
    return encode_key(connector, dict(sorted(key.mapping.items())))
