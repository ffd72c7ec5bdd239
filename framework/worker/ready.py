"""A process that has what a plan needs before there is a plan."""

import gc
from collections.abc import Mapping

from headrace.framework import registry
from headrace.framework.config import SourceCommonConfig
from headrace.framework.readiness import Readiness
from headrace.framework.registry import Kind

__all__ = ["get_ready", "plugins_of"]


def plugins_of(config: SourceCommonConfig) -> Mapping[Kind, str]:
    """What a task of this configuration imports first."""
    return {
        Kind.SOURCES: config.connector_class,
        Kind.TRANSFORMERS: config.input_format,
        Kind.CONVERTERS: config.value_converter,
        Kind.SINKS: config.sink,
    }


def get_ready(plugins: Mapping[Kind, str]) -> None:
    """Import and load what they need, in a process that is there for tasks alone."""
    for kind, name in plugins.items():
        plugin = registry.find(kind, name)
        if issubclass(plugin, Readiness):
            plugin.get_ready()
    gc.freeze()  # what is imported by now stays, and no look for garbage need go through it again
