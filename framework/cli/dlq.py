"""`headrace dlq`: the dead letters of a connector, looked at and replayed."""

import json
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from headrace.framework.cli.options import config_command
from headrace.framework.cli.tables import print_table
from headrace.framework.driver.replaying import LETTERS, dead_letters, replay

if TYPE_CHECKING:
    from headrace.offsets.kafka.dead_letters import Buried

__all__ = ["dlq"]

LONGEST_REASON = 120
PAGE = 1000
AT_ONCE = 64 * 1024

object_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--object", "pattern", metavar="PATTERN", help="Only those of objects with that name; * and ? stand for others."
)


@click.group()
def dlq() -> None:
    """Show the records that could not be sent, and send those that can be now."""


@dlq.command("list")
@config_command
@object_option
def _list(*, props: Mapping[str, str], output: str, pattern: str | None) -> None:
    """Show every dead letter of the connector that is not replayed.

    Nothing is written, and a run goes on undisturbed.
    """
    found = dead_letters(props, pattern=pattern)
    if found is None:
        click.echo(f"there is no topic {props.get(LETTERS)} yet: no dead letters", err=True)
        found = iter(())
    if output == "json":
        _print_document(props, map(_as_json, found), dict)
        return
    head = ("letter", "object", "record", "bytes", "error")
    rows = ((one.place, one.letter.object, one.letter.number, _bytes(one), _reason(one)) for one in found)
    print_table(head, list(islice(rows, PAGE)))
    while page := list(islice(rows, PAGE)):
        print_table(head, page)


@dlq.command("replay")
@config_command
@object_option
def _replay(*, props: Mapping[str, str], output: str, pattern: str | None) -> None:
    """Read just those pieces of the source again, and send what is good now, exactly once.

    What still is bad stays a dead letter, and is named with its reason; exit code 1 then. A run may go on meanwhile.
    """
    counts = {"replayed": 0, "records": 0, "left": 0}
    told = _told(props, pattern, counts, quiet=output == "json")
    if output == "json":
        _print_document(props, told, lambda: counts)
    else:
        deque(told, maxlen=0)
        click.echo(f"{counts['replayed']} dead letters replayed as {counts['records']} records, {counts['left']} left")
    if counts["left"]:
        sys.exit(1)


def _told(
    props: Mapping[str, str], pattern: str | None, counts: dict[str, int], *, quiet: bool
) -> Iterator[dict[str, Any]]:
    """What has become of each letter, counted."""
    for one in replay(props, pattern=pattern):
        if not quiet and one.error is not None:
            click.echo(f"{one.found.place}: {one.error}", err=True)
        counts["replayed" if one.error is None else "left"] += 1
        counts["records"] += one.records
        yield {**_as_json(one.found), "records": one.records, "error": one.error}


def _print_document(
    props: Mapping[str, str], letters: Iterable[dict[str, Any]], totals: Callable[[], Mapping[str, int]]
) -> None:
    """One document for all letters, however many: nothing of it is shown before all are known, and none is held."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace") as written:
        written.write(f'{{\n  "topic": {json.dumps(props.get(LETTERS), ensure_ascii=False)},\n  "letters": [')
        between = "\n"
        for letter in letters:
            written.write(between + indent(json.dumps(letter, indent=2, ensure_ascii=False), "    "))
            between = ",\n"
        written.write("]" if between == "\n" else "\n  ]")
        written.writelines(f',\n  "{name}": {count}' for name, count in totals().items())
        written.write("\n}\n")
        written.seek(0)
        while text := written.read(AT_ONCE):
            click.echo(text, nl=False)


def _as_json(found: "Buried") -> dict[str, Any]:
    letter = found.letter
    return {
        "partition": found.partition,
        "offset": found.offset,
        "timestamp": found.timestamp,
        "object": letter.object,
        "etag": letter.etag or None,
        "record": letter.number,
        "count": letter.count,
        "byte_start": letter.start,
        "byte_end": letter.end,
        "source_partition": letter.source_partition,
        "source_offset": letter.source_offset,
        "error": letter.error,
    }


def _bytes(found: "Buried") -> str | None:
    letter = found.letter
    return None if letter.start is None else f"{letter.start}-{'' if letter.end is None else letter.end}"


def _reason(found: "Buried") -> str:
    text = found.letter.error
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}..."
