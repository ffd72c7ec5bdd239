"""Rows for people: drawn on a terminal, plain columns for a pipe."""

import sys
from collections.abc import Sequence

import click

__all__ = ["print_table"]


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows on standard output; what a terminal cannot show is escaped."""
    cells = [[_cell(value) for value in row] for row in rows]
    if sys.stdout.isatty():
        _draw(head, cells)
        return
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for row in [list(head), *cells]:
        padded = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        click.echo("  ".join(padded).rstrip())


def _draw(head: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - for a terminal only
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(*head, box=None, pad_edge=False)
    for row in cells:
        table.add_row(*map(Text, row))
    Console().print(table)


def _cell(value: object) -> str:
    text = "-" if value is None else str(value)
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )
