"""Everything that can be wrong with a configuration, found without asking S3, Kafka or a source."""

from collections.abc import Iterator, Mapping

from headrace.framework.config import SourceCommonConfig
from headrace.framework.errors import ConfigError, Fault, PluginError
from headrace.framework.registry import Kind, find

__all__ = ["check"]

CONNECTOR_CLASS = "connector.class"


def check(props: Mapping[str, str]) -> SourceCommonConfig:
    """The configuration of the source that `connector.class` names; `ConfigError` with every fault.

    Asked are the source, the common keys, and the transformer, the converters and the distribution strategy that the
    configuration names: each reads its own keys. Nothing is opened.
    """
    try:
        config = _configured(props)
    except ConfigError as error:
        raise ConfigError(_ordered([*error.faults, *_common_faults(props, error)], props)) from error
    faults = list(_plugin_faults(config))
    if faults:
        raise ConfigError(_ordered(faults, props))
    return config


def _configured(props: Mapping[str, str]) -> SourceCommonConfig:
    name = props.get(CONNECTOR_CLASS, "")
    source = find(Kind.SOURCES, name)()
    try:
        config: SourceCommonConfig = source.configure(props)
    except ConfigError:
        raise
    except Exception as error:  # a task's own code may raise anything, and must be named
        reason = f"its configure failed with {type(error).__name__}; it should raise ConfigError with its faults"
        raise ConfigError([Fault(CONNECTOR_CLASS, name, reason)]) from error
    return config


def _common_faults(props: Mapping[str, str], error: ConfigError) -> Iterator[Fault]:
    """What the common keys say: a source that stops at its own first fault must not hide it.

    A source that was asked knows better which keys there are; without one, all are looked at.
    """
    blamed = {fault.key for fault in error.faults}
    declared = {key for option in SourceCommonConfig.options() for key in option.keys}
    try:
        yield from _plugin_faults(SourceCommonConfig.from_props(props))
    except ConfigError as common:
        for fault in common.faults:
            if fault.key not in blamed and (fault.key in declared or isinstance(error, PluginError)):
                yield fault


def _plugin_faults(config: SourceCommonConfig) -> Iterator[Fault]:
    for ask in (_transformer, _distribution, _key_converter, _value_converter):
        try:
            ask(config)
        except ConfigError as error:
            yield from error.faults


def _transformer(config: SourceCommonConfig) -> None:
    find(Kind.TRANSFORMERS, config.input_format)().configure(config.props)


def _distribution(config: SourceCommonConfig) -> None:
    find(Kind.DISTRIBUTIONS, config.distribution_type)().configure(config.props)


def _key_converter(config: SourceCommonConfig) -> None:
    converter = find(Kind.CONVERTERS, config.key_converter, key="key.converter")()
    converter.configure(config.converter_props("key"), is_key=True)


def _value_converter(config: SourceCommonConfig) -> None:
    converter = find(Kind.CONVERTERS, config.value_converter, key="value.converter")()
    converter.configure(config.converter_props("value"), is_key=False)


def _ordered(faults: list[Fault], props: Mapping[str, str]) -> list[Fault]:
    order = {key: place for place, key in enumerate(props)}
    return sorted(faults, key=lambda fault: order.get(fault.key, -1))
