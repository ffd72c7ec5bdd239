"""The page on the configuration, made from what the options themselves declare.

`python -m headrace.framework.config_docs` prints docs/configuration.md; a test compares the two.
"""

from collections.abc import Iterator, Mapping

import click

from headrace.framework import registry
from headrace.framework.config import SourceCommonConfig
from headrace.framework.format_keys import built_in_formats, options_of
from headrace.framework.options import Option, Options

__all__ = ["options_table", "page"]

INTRODUCTION = """\
# Configuration

A configuration is a flat map of texts, as in Kafka Connect. A file of it is `.json` (the map itself, or Connect's
`{"name": ..., "config": {...}}`), `.properties` (by Java's rules) or `.toml` (nested tables are joined by dots, lists
by commas). Of several files the later ones go over the earlier ones, and `--set key=value` over all of them; so a
worker's properties file and a connector's JSON from a running Kafka Connect can be passed side by side as they are.

`${env:NAME}` stands for an environment variable and `${file:PATH:KEY}` for a key of a properties file. They are looked
up when a value is needed, and what they stand for is never printed. Nor are secrets: what a key with a word like
password, secret or token holds is shown as `[hidden]`.

An unknown key is a fault, and so is a key that does not work yet; a key that is known and has no effect is a warning.
For a task that declares no keys of its own, unknown keys pass, unless they are a slip in a known one.
`headrace validate FILE...` says all of it at once.

This page is made from the code: `python -m headrace.framework.config_docs`.
"""
CLIENTS = """\
## Kafka's clients

`producer.override.`, `consumer.override.` and `admin.override.` set up the clients, by librdkafka's names; Java's names
are translated where they differ. What a worker says under `producer.`, `consumer.` and `admin.` comes before it, and
`security.protocol`, `sasl.` and `ssl.` without a prefix before that. A JAAS text becomes librdkafka's `sasl.` settings
(plain, SCRAM, Kerberos, OAuth bearer); stores in PEM and key stores in PKCS12 are taken, Java's own are refused.
What Headrace itself decides (`acks`, `transactional.id`, `isolation.level`, ...) has no effect, with a warning.
"""


FORMATS = """\
## Keys of the formats

With another `input.format` they have no effect, and a warning says so.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([*_sections()])


def options_table(kind: type[Options], *, besides: type[Options] = Options) -> str:
    """A table of the options of a class, without those of `besides`."""
    known = {declared.key for declared in besides.options()}
    rows = [_row(declared) for declared in kind.options() if declared.key not in known]
    return _table(("key", "kind", "default", "meaning"), rows)


def _sections() -> Iterator[str]:
    yield INTRODUCTION
    yield "## Keys of every source\n"
    yield options_table(SourceCommonConfig)
    yield FORMATS
    yield _table(
        ("key", "kind", "default", "meaning"), [_row(one) for name in built_in_formats() for one in options_of(name)]
    )
    yield CLIENTS
    for source in _sources():
        yield f"## Keys of the source `{source.name}`\n"
        if source.extra:
            yield f"It comes with the extra `{source.extra}`: `pip install 'headrace[{source.extra}]'`.\n"
        yield options_table(registry.find(registry.Kind.SOURCES, source.name).config_class, besides=SourceCommonConfig)
    yield "## Known, and not working yet\n"
    yield _reasons(SourceCommonConfig.NOT_YET, "why it is refused")
    yield "## Known, and without effect\n"
    yield _reasons(SourceCommonConfig.INERT, "why")


def _sources() -> list[registry.Plugin]:
    """The sources that Headrace brings itself."""
    return [one for one in registry.plugins(registry.Kind.SOURCES) if one.distribution == registry.DISTRIBUTION]


def _row(declared: Option) -> tuple[str, ...]:
    default = "required" if declared.required else declared.default or ""
    others = [f"`{key}`" for key in (*declared.over, *declared.aliases)]
    also = f" Also: {', '.join(others)}." if others else ""
    return f"`{declared.key}`", declared.parser.describe(), default, declared.doc + also


def _reasons(table: Mapping[str, str], title: str) -> str:
    by_reason: dict[str, list[str]] = {}
    for key, reason in table.items():
        by_reason.setdefault(reason, []).append(f"`{key}`")
    return _table(("keys", title), [(", ".join(keys), reason) for reason, keys in by_reason.items()])


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    click.echo(page(), nl=False)
