"""`headrace dlq`: the dead letters of a connector, looked at and replayed."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from headrace.framework.cli.options import config_command
from headrace.framework.cli.tables import print_table
from headrace.framework.driver.replaying import LETTERS, dead_letters, replay

if TYPE_CHECKING:
    from headrace.offsets.kafka.dead_letters import Buried

__all__ = ["dlq"]

LONGEST_REASON = 120

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
    letters = found or ()
    if output == "json":
        document = {"topic": props.get(LETTERS), "letters": [_as_json(one) for one in letters]}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    head = ("letter", "object", "record", "bytes", "error")
    print_table(head, [(one.place, one.letter.object, one.letter.number, _bytes(one), _reason(one)) for one in letters])


@dlq.command("replay")
@config_command
@object_option
def _replay(*, props: Mapping[str, str], output: str, pattern: str | None) -> None:
    """Read just those pieces of the source again, and send what is good now, exactly once.

    What still is bad stays a dead letter, and is named with its reason; exit code 1 then. A run may go on meanwhile.
    """
    done = list(_told(props, pattern, quiet=output == "json"))
    replayed = [one for one in done if one["error"] is None]
    if output == "json":
        totals = {"replayed": len(replayed), "records": sum(one["records"] for one in done)}
        document = {"topic": props.get(LETTERS), **totals, "left": len(done) - len(replayed), "letters": done}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        records = sum(one["records"] for one in done)
        click.echo(f"{len(replayed)} dead letters replayed as {records} records, {len(done) - len(replayed)} left")
    if len(replayed) < len(done):
        sys.exit(1)


def _told(props: Mapping[str, str], pattern: str | None, *, quiet: bool) -> Any:
    for one in replay(props, pattern=pattern):
        if not quiet and one.error is not None:
            click.echo(f"{one.found.place}: {one.error}", err=True)
        yield {**_as_json(one.found), "records": one.records, "error": one.error}


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
