"""The settings of Kafka's clients, from a configuration in Connect's words to librdkafka's.

What a worker says for all its connections (`security.protocol`, `sasl.`, `ssl.`) comes first; what it says for one
kind of client (`producer.`) goes over it, and what a connector says (`producer.override.`) over both.
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal

import attrs

from headrace.framework.client_names import COMMON, LIBRDKAFKA, OURS, RENAMED, WITHOUT_EFFECT
from headrace.framework.client_security import SECURITY, signed_in, trusted
from headrace.framework.errors import Fault
from headrace.framework.nearest import near_miss
from headrace.framework.secrets import HIDDEN, looks_secret, resolve, shown

__all__ = ["Client", "ClientSettings", "client_settings"]

Client = Literal["producer", "consumer", "admin"]

KIB = 1024


@attrs.frozen(kw_only=True)
class ClientSettings:
    """What a client is made with, what is wrong with it, what of it has no effect. Its repr shows no value."""

    settings: Mapping[str, str] = attrs.field(repr=lambda settings: repr(sorted(settings)))
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()


def client_settings(client: Client, props: Mapping[str, str]) -> ClientSettings:
    """The settings of one kind of client; raises nothing: what is wrong is in `faults`."""
    translation = _Translation()
    for name, (key, text) in _given(client, props).items():
        translation.take(name, key, text)
    translation.finish()
    return ClientSettings(
        settings=translation.settings, faults=tuple(translation.faults), warnings=tuple(translation.warnings)
    )


@attrs.define
class _Translation:
    settings: dict[str, str] = attrs.field(factory=dict)
    faults: list[Fault] = attrs.field(factory=list)
    warnings: list[str] = attrs.field(factory=list)
    security: dict[str, str] = attrs.field(factory=dict)
    origin: dict[str, tuple[str, str]] = attrs.field(factory=dict)

    def take(self, name: str, key: str, text: str) -> None:
        self.origin[name] = key, text
        reason = OURS.get(name) or WITHOUT_EFFECT.get(name)
        slip = None if reason or name in LIBRDKAFKA else near_miss(name, LIBRDKAFKA | RENAMED.keys())
        if reason:
            self.warnings.append(f"{key} has no effect here: {reason}")
        elif slip and slip != name:
            value = HIDDEN if looks_secret(slip) else shown(key, text)
            self.faults.append(Fault(key, value, "is unknown", key.removesuffix(name) + slip))
        else:
            self._translate(name, text)

    def finish(self) -> None:
        self.settings |= signed_in(self.security, self._blame) | trusted(self.security, self._blame)

    def _translate(self, name: str, text: str) -> None:
        try:
            value = resolve(text).strip()
            if name in SECURITY:
                self.security[name] = value
            else:
                new, change = TRANSLATED.get(name, (RENAMED.get(name, name), str))
                self.settings[new] = change(value)
        except ValueError as error:
            self._blame(name, str(error))

    def _blame(self, name: str, message: str) -> None:
        key, text = self.origin[name]
        self.faults.append(Fault(key, shown(key, text), message))


def _given(client: Client, props: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Name to the key that sets it and its text."""
    override = f"{client}.override."
    common = {key: (key, text) for key, text in props.items() if key.startswith(COMMON)}
    worker = {
        key.removeprefix(f"{client}."): (key, text)
        for key, text in props.items()
        if key.startswith(f"{client}.") and not key.startswith(override)
    }
    connector = {key.removeprefix(override): (key, text) for key, text in props.items() if key.startswith(override)}
    return common | worker | connector


def _kilobytes(value: str) -> str:
    if not re.fullmatch("[0-9]{1,18}", value):
        raise ValueError("must be a number of bytes")
    return str(max(1, int(value) // KIB))


def _buffer(value: str) -> str:
    return "0" if value == "-1" else value


def _partitioner(value: str) -> str:
    if value.rpartition(".")[2] not in {"", "DefaultPartitioner"}:
        raise ValueError(
            "is a Java class, which cannot run here: take it out, or name one of librdkafka's with partitioner"
        )
    return "murmur2_random"


TRANSLATED: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "buffer.memory": ("queue.buffering.max.kbytes", _kilobytes),
    "compression.gzip.level": ("compression.level", str),
    "partitioner.class": ("partitioner", _partitioner),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", _buffer),
    "send.buffer.bytes": ("socket.send.buffer.bytes", _buffer),
    "ssl.endpoint.identification.algorithm": (
        "ssl.endpoint.identification.algorithm",
        lambda value: value or "none",
    ),
}
"""What takes another value as well as another name."""
