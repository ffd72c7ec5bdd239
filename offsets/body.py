"""The body in which Kafka Connect's REST API shows and takes offsets.

    {"offsets": [{"partition": {"bucket": "b", "objectKey": "k"}, "offset": {"recordCount": 3}}]}

An offset of null forgets the entry. What a body may say beyond its form, the source decides (`SourceOffsets`).

A connector that has rolled up what is finished has one name more in the body that `export` writes, and `import` takes:
`"rolledUp"`, the shards of the roll-up by their numbers, in base64.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from headrace.framework.errors import Fault, MalformedOffsetError, OffsetsBodyError, OffsetValueError
from headrace.framework.nearest import nearest
from headrace.offsets.key import OffsetManagerKey, checked_map
from headrace.offsets.rollup import decode_shard

__all__ = ["Entry", "read_body", "read_rolled_up", "write_body"]

Entry: TypeAlias = tuple[dict[str, Any], dict[str, Any] | None]
"""A source partition and its offset; None forgets it."""

FORM = '{"offsets": [{"partition": {...}, "offset": {...}}]}'
MEMBERS = ("partition", "offset")
ROLLED_UP = "rolledUp"
SHOWN = 80


def read_body(text: str) -> list[Entry]:
    """The entries of a body, in its order; `OffsetsBodyError` with every fault of its form.

    Stricter than Kafka Connect where it would guess: an entry without an `offset` is a fault there is no way to mean,
    and so are a partition that is named twice, and a name that stands twice in one map.
    """
    offsets = _offsets(_parsed(text))
    faults: list[Fault] = []
    entries: list[Entry] = []
    places: dict[OffsetManagerKey, str] = {}
    for index, given in enumerate(offsets):
        place = f"offsets[{index}]"
        found = list(_faults(place, given))
        if not found:
            partition, offset = given["partition"], given["offset"]
            first = places.setdefault(OffsetManagerKey(partition), place)
            if first != place:
                found = [Fault(f"{place}.partition", _shown(partition), f"is that of {first}, too: say it once")]
            entries.append((partition, offset))
        faults += found
    if faults:
        raise OffsetsBodyError(faults)
    return entries


def read_rolled_up(text: str) -> dict[int, bytes]:
    """The shards of the roll-up in a body; none where it has none. `OffsetsBodyError` for one that cannot be read."""
    given = _parsed(text)
    shards = given.get(ROLLED_UP, {}) if isinstance(given, dict) else {}
    try:
        found = {int(number): base64.b64decode(shard, validate=True) for number, shard in shards.items()}
        for number, shard in found.items():
            decode_shard(number, shard)
    except (AttributeError, TypeError, ValueError, MalformedOffsetError) as error:
        raise OffsetsBodyError([Fault(ROLLED_UP, None, f"is not what export has written: {error}")]) from error
    return found


def write_body(
    entries: Iterable[tuple[Mapping[str, Any], Mapping[str, Any] | None]], rolled_up: Mapping[int, bytes] | None = None
) -> str:
    """The body of `entries`, and of the shards of a roll-up, as text for people and programs."""
    offsets = [{"partition": dict(partition), "offset": offset and dict(offset)} for partition, offset in entries]
    body: dict[str, Any] = {"offsets": offsets}
    if rolled_up:
        body[ROLLED_UP] = {str(number): base64.b64encode(shard).decode() for number, shard in rolled_up.items()}
    return json.dumps(body, indent=2, ensure_ascii=False)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise OffsetsBodyError([Fault("body", None, f"is not JSON of the form {FORM}: {error}")]) from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} stands twice in one map")
    return found


def _offsets(body: Any) -> list[Any]:
    if not isinstance(body, dict):
        raise OffsetsBodyError([Fault("body", _shown(body), f"is not of the form {FORM}")])
    unknown = [name for name in body if name not in {"offsets", ROLLED_UP}]
    if unknown or "offsets" not in body:
        name = unknown[0] if unknown else None
        near = nearest(name, ["offsets"]) if name else None
        raise OffsetsBodyError([Fault(name or "offsets", None, f"the form is {FORM}, with that one name", near)])
    offsets = body["offsets"]
    if not isinstance(offsets, list):
        raise OffsetsBodyError([Fault("offsets", _shown(offsets), "must be a list of entries")])
    return offsets


def _faults(place: str, given: Any) -> Iterator[Fault]:
    if not isinstance(given, dict):
        yield Fault(place, _shown(given), "must be a map with partition and offset")
        return
    for name in given:
        if name not in MEMBERS:
            yield Fault(f"{place}.{name}", _shown(given[name]), "is unknown", nearest(name, MEMBERS))
    for name in MEMBERS:
        if name not in given:
            hint = "; null forgets the entry" if name == "offset" else ""
            yield Fault(f"{place}.{name}", None, f"is missing{hint}")
        elif name == "partition" or given[name] is not None:
            yield from _map_faults(f"{place}.{name}", given[name])


def _map_faults(place: str, given: Any) -> Iterator[Fault]:
    if not isinstance(given, dict):
        yield Fault(place, _shown(given), "must be a map")
        return
    if not given:
        yield Fault(place, "{}", "is empty" if place.endswith("partition") else "is empty; null forgets the entry")
    for name, value in given.items():
        try:
            checked_map({name: value}, what="it")
        except OffsetValueError as error:
            yield Fault(f"{place}.{name}", _shown(value), str(error))


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
