"""One look-up for every kind of plugin, by name.

What Headrace brings stands in a table here, as text, so that it is found where a package's metadata is missing (in a
zip on an executor's path), and imported only when it is used. What others bring, they declare as entry points:

```toml
[project.entry-points."headrace.transformers"]
csv-with-header = "acme.headrace:CsvTransformer"
```

The groups are `headrace.` and a `Kind`. A name belongs to one plugin: there is no overriding.
"""

import difflib
import enum
import functools
import importlib
import operator
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import attrs

from headrace.framework.errors import Fault, PluginError

__all__ = ["Kind", "Plugin", "find", "plugins", "remember"]

DISTRIBUTION = "headrace"


class Kind(enum.StrEnum):
    """What a plugin is, and the last word of its entry-point group."""

    SOURCES = "sources"
    TRANSFORMERS = "transformers"
    CONVERTERS = "converters"
    SINKS = "sinks"
    DISTRIBUTIONS = "distributions"
    TRANSFORMS = "transforms"


@attrs.frozen(kw_only=True)
class Plugin:
    """Something that can be named in a configuration.

    `target` is where its class is, as `module:Class`. `distribution` and `version` are those of the package that
    brings it; None for a class that was named by its place. `extra` is the package's extra that it needs.
    """

    name: str
    kind: Kind
    target: str
    distribution: str | None = None
    version: str | None = None
    extra: str | None = None

    @property
    def origin(self) -> str:
        """Where it comes from, for messages."""
        package = " ".join(filter(None, (self.distribution, self.version)))
        return f"{self.target} ({package})" if package else self.target


_BUILT_IN: Mapping[Kind, Mapping[str, tuple[str, str | None]]] = {
    Kind.SOURCES: {
        "files": ("headrace.sources.files:FilesSource", None),
        "redis": ("headrace.sources.redis:RedisSource", "redis"),
        "s3": ("headrace.sources.s3:S3Source", "s3"),
    },
    Kind.TRANSFORMERS: {
        "bytes": ("headrace.transformers.bytes:BytesTransformer", None),
        "avro": ("headrace.transformers.avro:AvroTransformer", "avro"),
        "csv": ("headrace.transformers.csv:CsvTransformer", None),
        "json": ("headrace.transformers.json:JsonTransformer", None),
        "jsonl": ("headrace.transformers.jsonl:JsonlTransformer", None),
        "parquet": ("headrace.transformers.parquet:ParquetTransformer", "parquet"),
        "text": ("headrace.transformers.text:TextTransformer", None),
    },
    Kind.CONVERTERS: {
        "bytes": ("headrace.converters.bytes:BytesConverter", None),
        "json": ("headrace.converters.json:JsonConverter", None),
        "string": ("headrace.converters.string:StringConverter", None),
    },
    Kind.SINKS: {
        "kafka": ("headrace.sinks.kafka:KafkaSink", None),
    },
    Kind.DISTRIBUTIONS: {
        "balanced": ("headrace.framework.distribution.balanced:BalancedDistribution", None),
        "object_hash": ("headrace.framework.distribution.object_hash:ObjectHashDistribution", None),
        "partition": ("headrace.framework.distribution.partition:PartitionDistribution", None),
    },
    Kind.TRANSFORMS: {},
}

_JAVA_NAMES: Mapping[Kind, Mapping[str, str]] = {
    Kind.SOURCES: {"io.aiven.kafka.connect.s3.source.S3SourceConnector": "s3"},
    Kind.CONVERTERS: {
        "org.apache.kafka.connect.converters.ByteArrayConverter": "bytes",
        "org.apache.kafka.connect.json.JsonConverter": "json",
        "org.apache.kafka.connect.storage.StringConverter": "string",
    },
}

_KEYS: Mapping[Kind, str] = {
    Kind.SOURCES: "connector.class",
    Kind.TRANSFORMERS: "input.format",
    Kind.CONVERTERS: "value.converter",
    Kind.SINKS: "sink",
    Kind.DISTRIBUTIONS: "distribution.type",
    Kind.TRANSFORMS: "transforms",
}


_remembered: dict[str, type[Any]] = {}


def find(kind: Kind | str, name: str, *, key: str | None = None) -> type[Any]:
    """The class that `name` stands for, imported.

    Converters and the S3 source also go by the Java class names of the same, and a source by its own place,
    `module:Class`. `PluginError` if there is none of that name, if there are two, or if it cannot be imported; `key`
    is the configuration key to blame, where it is not the usual one.
    """
    kind = Kind(kind)
    if kind is Kind.SOURCES and name in _remembered:
        return _remembered[name]
    blame = key or _KEYS[kind]
    return _loaded(_named(kind, name, blame), blame)


def remember(name: str, found: type[Any]) -> None:
    """Have `find` answer with this class for a source of the name `module:Class`.

    For processes that have the class and not its module: executors, which get it from the driver.
    """
    _remembered[name] = found


def plugins(kind: Kind | str) -> list[Plugin]:
    """Every plugin of a kind, in the order of their names; nothing is imported.

    Where two have one name, both are in the list, and `find` refuses the name.
    """
    kind = Kind(kind)
    known = [*_built_in(kind), *_third_party(kind, tuple(sys.path))]
    return sorted(known, key=lambda plugin: (plugin.name, plugin.distribution != DISTRIBUTION, plugin.origin))


def _built_in(kind: Kind) -> list[Plugin]:
    import headrace  # noqa: PLC0415 - the front door imports the framework

    return [
        Plugin(
            name=name,
            kind=kind,
            target=target,
            distribution=DISTRIBUTION,
            version=headrace.__version__,
            extra=extra,
        )
        for name, (target, extra) in _BUILT_IN[kind].items()
    ]


# Reading the metadata of every installed package takes a while, and is done for every task on an executor.
@functools.lru_cache(maxsize=64)
def _third_party(kind: Kind, _path: tuple[str, ...]) -> tuple[Plugin, ...]:
    return tuple(_declared(kind, point) for point in metadata.entry_points(group=f"headrace.{kind}"))


def _declared(kind: Kind, point: metadata.EntryPoint) -> Plugin:
    target, _, extras = point.value.partition("[")
    return Plugin(
        name=point.name,
        kind=kind,
        target="".join(target.split()),
        distribution=point.dist.name if point.dist else None,
        version=point.dist.version if point.dist else None,
        extra=extras.strip(" ]").partition(",")[0].strip() or None,
    )


def _named(kind: Kind, name: str, key: str) -> Plugin:
    known = plugins(kind)
    wanted = _JAVA_NAMES.get(kind, {}).get(name, name)
    found = [plugin for plugin in known if plugin.name == wanted]
    if len(found) > 1:
        raise _refused(
            key,
            name,
            f"there are {len(found)} plugins of the name {wanted!r}: {' and '.join(one.origin for one in found)}; "
            "uninstall all but one of these packages, or have one renamed",
        )
    if found:
        return found[0]
    if kind is Kind.SOURCES and ":" in name:
        return Plugin(name=name, kind=kind, target=name)
    raise _refused(key, name, _unknown(kind, known), _nearest(name, known))


def _unknown(kind: Kind, known: list[Plugin]) -> str:
    names = ", ".join(f"{one.name} ({_install(one)})" if one.extra else one.name for one in known) or "none yet"
    own = "a class of your own goes by module:Class" if kind is Kind.SOURCES else f"others come by headrace.{kind}"
    return f"there is no {kind.removesuffix('s')} of this name; known are {names}; {own}"


def _nearest(name: str, known: list[Plugin]) -> str | None:
    close = difflib.get_close_matches(name, [plugin.name for plugin in known], n=1)
    return close[0] if close else None


def _loaded(plugin: Plugin, key: str) -> type[Any]:
    module, _, path = plugin.target.partition(":")
    if not module or not path:
        raise _refused(key, plugin.name, f"{plugin.origin} is not of the form module:Class")
    try:
        found = operator.attrgetter(path)(importlib.import_module(module))
    except ModuleNotFoundError as error:
        raise _refused(key, plugin.name, _what_is_missing(plugin, module, error)) from error
    except AttributeError as error:
        raise _refused(key, plugin.name, f"{plugin.origin} cannot be loaded: {error}") from error
    except Exception as error:  # a plugin's module may raise anything, and must be named
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise _refused(key, plugin.name, f"{plugin.origin} cannot be imported: {reason}") from error
    if not isinstance(found, type):
        raise _refused(key, plugin.name, f"{plugin.origin} is not a class")
    return found


def _what_is_missing(plugin: Plugin, module: str, error: ModuleNotFoundError) -> str:
    missing = error.name or str(error)
    if f"{module}.".startswith(f"{missing}."):
        remedy = f"install {plugin.distribution} again" if plugin.distribution else "put it on PYTHONPATH"
        return f"there is no module {missing}, where {plugin.origin} should be: {remedy}"
    return f"{plugin.origin} needs {missing}: {_install(plugin)}"


def _install(plugin: Plugin) -> str:
    if plugin.extra:
        return f"pip install '{plugin.distribution}[{plugin.extra}]'"
    return f"install what {plugin.distribution or plugin.target} needs"


def _refused(key: str, name: str, message: str, suggestion: str | None = None) -> PluginError:
    return PluginError([Fault(key, name, message, suggestion)])
