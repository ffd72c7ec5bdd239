"""Whatever a configuration holds, it is read, or refused with its faults."""

from collections.abc import Mapping
from typing import ClassVar

import attrs
from hypothesis import given
from hypothesis import strategies as st

from headrace.framework.config import Secret, SourceCommonConfig, integer, option, secret
from headrace.framework.errors import ConfigError, Fault
from headrace.framework.properties import parse_properties, write_properties

HIDDEN_TEXT = "hunter2-4711"


@attrs.frozen(kw_only=True)
class OwnConfig(SourceCommonConfig):
    INERT: ClassVar[Mapping[str, str]] = {"own.inert": "it is not needed"}

    count: int = option("own.count", integer(), doc="How many.")
    word: Secret | None = option("own.password", secret(), default=None, doc="What opens it.")

    def validate(self):
        yield from super().validate()
        if self.count > self.tasks_max:
            yield self.fault("own.count", "must be at most tasks.max")


KNOWN = sorted(
    OwnConfig.known() | {"producer.override.buffer.memory", "producer.sasl.jaas.config", "ssl.keystore.type"}
)
VALUES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", "0", "-1", "true", "object", "a:B", "h:1", "${env:PATH}", "${file:/etc/hosts:x}", "${x:y}"]),
    st.none() | st.booleans() | st.integers() | st.floats() | st.lists(st.text(max_size=3), max_size=2),
)
KEYS = (
    st.sampled_from(KNOWN)
    | st.text(max_size=20)
    | st.builds("{}{}".format, st.sampled_from(KNOWN), st.text(max_size=2))
)
PROPS = st.dictionaries(KEYS, VALUES, max_size=8)
LEAST = {"name": "n", "connector.class": "a:B", "bootstrap.servers": "h:1", "own.count": "1"}


def read(kind, props):
    """The configuration and no faults, or None and the faults."""
    try:
        return kind.from_props(props), ()
    except ConfigError as error:
        return None, error.faults


@given(props=PROPS, kind=st.sampled_from([SourceCommonConfig, OwnConfig]), least=st.booleans())
def test_nothing_but_config_error(props, kind, least):
    """Reading any map gives a configuration or a `ConfigError`, each fault of which has a key and a reason."""
    props = LEAST | props if least else props
    config, faults = read(kind, props)
    assert (config is None) == bool(faults)
    assert all(isinstance(fault, Fault) and fault.message for fault in faults)
    if config is not None:
        assert isinstance(config.producer_overrides, dict)
        assert config.props.keys() <= props.keys()
    assert all(isinstance(warning, str) for warning in kind.warnings_for(props))


@given(
    props=PROPS,
    key=st.sampled_from(["own.password", "sasl.jaas.config", "producer.override.ssl.key.password", "own.pasword"]),
)
def test_a_secret_is_never_shown(props, key):
    """Whatever else is wrong, no fault, repr or warning holds what a secret key says."""
    props = LEAST | props | {key: HIDDEN_TEXT}
    config, faults = read(OwnConfig, props)
    shown = f"{config!r} {faults!r} {'; '.join(map(str, faults))}"
    assert HIDDEN_TEXT not in shown
    assert HIDDEN_TEXT not in " ".join(OwnConfig.warnings_for(props))


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]))
    )
)
def test_properties_round_trip(properties):
    """What is written as a properties file is read back as it was."""
    assert {found.key: found.value for found in parse_properties(write_properties(properties))} == properties


@given(st.text())
def test_any_text_is_read_as_properties(text):
    """Any text is a properties file, except for a bad `\\u`, and its properties come in the order of their lines."""
    found, message = [], None
    try:
        found = parse_properties(text)
    except ValueError as error:
        message = str(error)
    if message is not None:
        assert message.startswith("line ")
        assert "\\u" in text
    else:
        assert [one.line for one in found] == sorted(one.line for one in found)
