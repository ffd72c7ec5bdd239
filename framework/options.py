"""Configuration declared once: key, kind, default and meaning stand beside the field that holds the value.

```python
@attrs.frozen(kw_only=True)
class NumbersConfig(SourceCommonConfig):
    count: int = option("numbers.count", integer(at_least=1), doc="How many numbers there are.")
    password: Secret | None = option("numbers.password", secret(), default=None, doc="What opens the well.")
    INERT: ClassVar[Mapping[str, str]] = {"numbers.speed": "numbers come as they come"}
```
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

import attrs

from headrace.framework.errors import ConfigError, Fault
from headrace.framework.nearest import near_miss, nearest
from headrace.framework.parsers import Parser
from headrace.framework.secrets import HIDDEN, looks_secret, masked, resolve, shown

__all__ = ["REQUIRED", "Option", "Options", "derived", "option"]

REQUIRED: Any = attrs.NOTHING
OPTION = "headrace.option"


@attrs.frozen(kw_only=True)
class Option:
    """What is declared of one key. `default` is as a person would write it, None where there is none."""

    key: str
    parser: Parser[Any]
    required: bool
    default: str | None
    doc: str
    over: tuple[str, ...]
    aliases: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that sets it, the one that wins first."""
        return (*self.over, self.key, *self.aliases)


@attrs.frozen
class derived:  # noqa: N801 - stands where a default stands
    """A default that follows from other options, declared above it; `words` say how, for the documentation.

    `make` is called with the options so far, where one that is required and missing is None.
    """

    make: Callable[[Any], Any]
    words: str


def option(
    key: str,
    parser: Parser[Any],
    *,
    default: Any = REQUIRED,
    doc: str,
    over: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
) -> Any:
    """A field of an `Options` class, set by `key`; without a default it must be given.

    `default` is a value, not a text, or `derived(...)`. `aliases` are old names, which work with a warning; `over`
    are other keys that mean the same and win.
    """
    declared = Option(
        key=key,
        parser=parser,
        required=default is REQUIRED,
        default=_default_words(default),
        doc=doc,
        over=over,
        aliases=aliases,
    )
    made = attrs.Factory(default.make, takes_self=True) if isinstance(default, derived) else default
    return attrs.field(default=made, repr=False, metadata={OPTION: declared})


@attrs.frozen(kw_only=True)
class Options:
    """The base of every configuration: declared fields on top of the map that they came from.

    `props` is that map, as it was given: references are not resolved in it, and its repr is masked. The other fields
    hold values. Make one with `from_props`.

    `INERT` are keys that are known and have no effect, `NOT_YET` keys that are known and do not work so far, each
    with the reason; a key that ends in `*` stands for all that begin with it. `PASSED_ON` are beginnings of keys that
    somebody else reads. `NEUTRAL` are values with which a `NOT_YET` key asks for nothing. All of them add to those of
    the base class, and the nearest class to speak of a key decides; an option of that key decides before all.
    """

    INERT: ClassVar[Mapping[str, str]] = {}
    NOT_YET: ClassVar[Mapping[str, str]] = {}
    NEUTRAL: ClassVar[Mapping[str, str]] = {}
    PASSED_ON: ClassVar[tuple[str, ...]] = ()

    props: Mapping[str, str] = attrs.field(factory=dict, repr=lambda props: repr(masked(props)), hash=False)

    @classmethod
    def from_props(cls, props: Mapping[str, str]) -> Self:
        """Read a flat map; references are resolved now. Raises nothing but `ConfigError`, with every fault in it."""
        given, faults = _flat(props)
        values: dict[str, Any] = {}
        missing: list[str] = []
        for name, declared in cls._fields():
            value, fault = _read(declared, given)
            if fault is None and value is not REQUIRED:
                values[name] = value
            elif fault is not None and declared.required:
                missing.append(name)
            if fault is not None and fault.key not in {other.key for other in faults}:
                faults.append(fault)
        faults.extend(cls._key_faults(given))
        made = cls._made(given, values, missing)
        faults.extend(cls._rule_faults(made, tuple(faults), missing))
        if faults:
            order = {key: place for place, key in enumerate(given)}
            raise ConfigError(sorted(faults, key=lambda fault: order.get(fault.key, -1)))
        return made

    @classmethod
    def warnings_for(cls, props: Mapping[str, str]) -> list[str]:
        """What works otherwise than its author may think: keys without effect, old names. No value is in it."""
        given, _ = _flat(props)
        return [*cls._alias_warnings(given), *cls._inert_warnings(given), *cls.notes(given)]

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Every option, those of the base classes first."""
        return tuple(declared for _, declared in cls._fields())

    @classmethod
    def is_open(cls) -> bool:
        """Whether keys that nobody declared pass, unless they are a slip in a known one."""
        return False

    @classmethod
    def keys_of_others(cls, props: Mapping[str, str]) -> frozenset[str]:  # noqa: ARG003 - a hook
        """Keys that pass because somebody whom the configuration names reads them."""
        return frozenset()

    @classmethod
    def notes(cls, props: Mapping[str, str]) -> Iterable[str]:  # noqa: ARG003 - a hook
        """Warnings of the class's own, for `warnings_for`. Extend the base class's."""
        return ()

    def validate(self) -> Iterable[Fault]:
        """The rules that concern more than one key. Extend the base class's.

        Also asked when single options are at fault, so that all faults come out at once: these hold their defaults
        then. An option without a default has no attribute then, and reading it ends the rules of this call.
        Show values by `fault`, which masks them.
        """
        return ()

    def fault(self, key: str, message: str, suggestion: str | None = None) -> Fault:
        """A fault of `key` with the value that it was given, masked if it looks like a secret."""
        value = self.props.get(key)
        return Fault(key, None if value is None else shown(key, value), message, suggestion)

    def warnings(self) -> list[str]:
        """What `warnings_for` says of the map that this came from."""
        return self.warnings_for(self.props)

    def value(self, key: str, default: str | None = None) -> str | None:
        """The text of any key, declared or not, with its references resolved; `ConfigError` if they cannot be."""
        if key not in self.props:
            return default
        try:
            return resolve(self.props[key])
        except ValueError as error:
            raise ConfigError([self.fault(key, str(error))]) from error

    def under(self, beginning: str) -> dict[str, str]:
        """The keys with a beginning, which is taken off, with their references resolved; `ConfigError` as `value`."""
        keys = [key for key in self.props if key.startswith(beginning)]
        return {key.removeprefix(beginning): self.value(key) or "" for key in keys}

    @classmethod
    def known(cls) -> frozenset[str]:
        """Every key that is known by its whole name."""
        named = {key for declared in cls.options() for key in declared.keys}
        tables = (cls._table("INERT"), cls._table("NOT_YET"))
        return frozenset(named.union(*tables)) - {key for table in tables for key in table if key.endswith("*")}

    @classmethod
    def _fields(cls) -> Iterator[tuple[str, Option]]:
        for field in attrs.fields(cls):
            if OPTION in field.metadata:
                yield field.name, field.metadata[OPTION]

    @classmethod
    def _table(cls, name: str) -> dict[str, str]:
        table: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            table.update(vars(base).get(name, {}))
        return table

    @classmethod
    def _verdict(cls, key: str) -> tuple[str, str] | None:
        """`INERT` or `NOT_YET`, with the reason, if the nearest class that speaks of the key says so."""
        for base in cls.__mro__:
            for name in ("INERT", "NOT_YET"):
                reason = _looked_up(vars(base).get(name, {}), key)
                if reason is not None:
                    return name, reason
        return None

    @classmethod
    def _is_option(cls, key: str) -> bool:
        return any(key in declared.keys for declared in cls.options())

    @classmethod
    def _key_faults(cls, given: Mapping[str, str]) -> Iterator[Fault]:
        neutral = cls._table("NEUTRAL")
        others = cls.keys_of_others(given)
        known = cls.known() | others
        for key, value in given.items():
            if cls._is_option(key) or key in others:
                continue
            verdict = cls._verdict(key)
            slip = None if key in known else near_miss(key, known)
            if slip or verdict is None:
                yield from cls._unknown(key, value, slip, known)
            elif verdict[0] == "NOT_YET" and value.strip().lower() not in {"", neutral.get(key)}:
                yield Fault(key, shown(key, value), f"not yet: {verdict[1]}")

    @classmethod
    def _unknown(cls, key: str, value: str, slip: str | None, known: frozenset[str]) -> Iterator[Fault]:
        passed_on = any(key.startswith(prefix) for base in cls.__mro__ for prefix in vars(base).get("PASSED_ON", ()))
        if (passed_on or cls.is_open()) and slip is None:
            return
        suggestion = slip or nearest(key, known)
        secret = suggestion is not None and looks_secret(suggestion)
        message = "is unknown" if suggestion else "is unknown, and no known key is like it"
        yield Fault(key, HIDDEN if secret else shown(key, value), message, suggestion)

    @classmethod
    def _made(cls, given: Mapping[str, str], values: Mapping[str, Any], missing: Iterable[str]) -> Self:
        made = cls(props=given, **values, **dict.fromkeys(missing))
        for name in missing:
            object.__delattr__(made, name)
        return made

    @classmethod
    def _rule_faults(cls, made: Self, found: Iterable[Fault], missing: Iterable[object]) -> Iterator[Fault]:
        blamed = {fault.key for fault in found}
        try:
            for fault in made.validate():
                if fault.key not in blamed:
                    yield fault
        except AttributeError as error:
            if error.obj is not made or error.name not in missing:
                raise

    @classmethod
    def _alias_warnings(cls, given: Mapping[str, str]) -> Iterator[str]:
        for declared in cls.options():
            present = [key for key in declared.keys if key in given]
            for key in present[1:]:
                yield f"{key} has no effect here: {present[0]} wins over it"
            if present and present[0] in declared.aliases:
                yield f"{present[0]} is an old name: write {declared.key}"

    @classmethod
    def _inert_warnings(cls, given: Mapping[str, str]) -> Iterator[str]:
        for key in given:
            verdict = None if cls._is_option(key) else cls._verdict(key)
            if verdict is not None and verdict[0] == "INERT":
                yield f"{key} has no effect here: {verdict[1]}"


def _flat(props: Mapping[Any, Any]) -> tuple[dict[str, str], list[Fault]]:
    """The map as texts; what Connect's REST API takes for a text (numbers, booleans) is taken for one."""
    flat: dict[str, str] = {}
    faults: list[Fault] = []
    for key, value in props.items():
        if not isinstance(key, str) or not key:
            faults.append(Fault(str(key), None, "must be a key: a text that is not empty"))
        elif isinstance(value, bool):
            flat[key] = str(value).lower()
        elif isinstance(value, (str, int, float)):
            flat[key] = str(value)
        elif value is not None:
            faults.append(Fault(key, None, f"must be a text, not {type(value).__name__}"))
    return flat, faults


def _read(declared: Option, given: Mapping[str, str]) -> tuple[Any, Fault | None]:
    """The value of an option, or what is wrong with it; `REQUIRED` where it is for the default to say."""
    key = next((key for key in declared.keys if key in given), None)
    if key is None:
        return REQUIRED, Fault(declared.key, None, f"is required: {declared.doc}") if declared.required else None
    text, parser = given[key], declared.parser
    try:
        return parser(resolve(text).strip()), None
    except ValueError as error:
        suggestion = None if parser.hidden else nearest(text.strip().lower(), parser.words)
        return None, Fault(key, HIDDEN if parser.hidden else shown(key, text), str(error), suggestion)


def _looked_up(table: Mapping[str, str], key: str) -> str | None:
    if key in table:
        return table[key]
    stars = [name for name in table if name.endswith("*") and key.startswith(name[:-1])]
    return table[max(stars, key=len)] if stars else None


def _default_words(default: Any) -> str | None:
    if default is REQUIRED or default is None:
        return None
    if isinstance(default, derived):
        return default.words
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return str(default).lower() if isinstance(default, bool) else str(default)
