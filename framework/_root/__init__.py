"""Headrace: offset-managed source tasks, driven by Spark, exactly once.

This is the front door: what stands in `__all__` may be relied on. Importing it is cheap: no Spark, no boto3 and no
confluent_kafka come with it; they are imported when something that needs them is used.

- To write a source task: `AbstractSourceTask`, `SourceRecord`, `OffsetManagerEntry`, `RetriableError`.
- To write a source of splits: `SplitSource`, `Split`, `SplitEnumerator`, `SourceReader`.
- To run one: `run` and `start`, or the command `headrace`.
- To test one: `headrace.testing`.

If you are here to read the code, follow the data: `headrace.framework` lists its files in that order.
"""

from typing import TYPE_CHECKING

from headrace.framework.lazy import lazy_names

if TYPE_CHECKING:
    from headrace.converters.base import Converter
    from headrace.framework.backoff import Backoff, BackoffConfig
    from headrace.framework.config import SourceCommonConfig
    from headrace.framework.distribution import ObjectDistributionStrategy
    from headrace.framework.driver.summary import RunStatus, RunSummary
    from headrace.framework.errors import (
        BrokerStartError,
        CacheError,
        ConfigError,
        DataError,
        DiskFullError,
        DownloadError,
        FencedError,
        HeadraceError,
        JavaNotFoundError,
        MalformedOffsetError,
        NotCompactedError,
        ObjectArchivedError,
        ObjectChangedError,
        ObjectVanishedError,
        OffsetsBodyError,
        OffsetsError,
        OffsetValueError,
        PipelineError,
        PluginError,
        PortInUseError,
        RecordTooLargeError,
        RetriableError,
        SetupError,
        SinkError,
        SourceError,
        TakenOverError,
        TaskError,
        TransactionTooLongError,
        UnclaimedObjectError,
    )
    from headrace.framework.handle import RunHandle, start
    from headrace.framework.record import RecordBatch, SourceRecord
    from headrace.framework.run import run
    from headrace.framework.schema import Schema, SchemaAndValue
    from headrace.framework.sink import Sink
    from headrace.framework.splits import SourceReader, Split, SplitEnumerator, SplitSource
    from headrace.framework.stop_rule import StopRule
    from headrace.framework.task import AbstractSourceTask, TaskContext
    from headrace.offsets.entry import OffsetManagerEntry
    from headrace.offsets.key import OffsetManagerKey
    from headrace.offsets.manager import OffsetManager
    from headrace.transformers.base import Transformer

__all__ = [
    "AbstractSourceTask",
    "Backoff",
    "BackoffConfig",
    "BrokerStartError",
    "CacheError",
    "ConfigError",
    "Converter",
    "DataError",
    "DiskFullError",
    "DownloadError",
    "FencedError",
    "HeadraceError",
    "JavaNotFoundError",
    "MalformedOffsetError",
    "NotCompactedError",
    "ObjectArchivedError",
    "ObjectChangedError",
    "ObjectDistributionStrategy",
    "ObjectVanishedError",
    "OffsetManager",
    "OffsetManagerEntry",
    "OffsetManagerKey",
    "OffsetValueError",
    "OffsetsBodyError",
    "OffsetsError",
    "PipelineError",
    "PluginError",
    "PortInUseError",
    "RecordBatch",
    "RecordTooLargeError",
    "RetriableError",
    "RunHandle",
    "RunStatus",
    "RunSummary",
    "Schema",
    "SchemaAndValue",
    "SetupError",
    "Sink",
    "SinkError",
    "SourceCommonConfig",
    "SourceError",
    "SourceReader",
    "SourceRecord",
    "Split",
    "SplitEnumerator",
    "SplitSource",
    "StopRule",
    "TakenOverError",
    "TaskContext",
    "TaskError",
    "TransactionTooLongError",
    "Transformer",
    "UnclaimedObjectError",
    "__version__",
    "run",
    "start",
]

__version__ = "0.1.0"

_HOMES = {
    "headrace.converters.base": ["Converter"],
    "headrace.framework.backoff": ["Backoff", "BackoffConfig"],
    "headrace.framework.config": ["SourceCommonConfig"],
    "headrace.framework.distribution": ["ObjectDistributionStrategy"],
    "headrace.framework.driver.summary": ["RunStatus", "RunSummary"],
    "headrace.framework.errors": [
        "BrokerStartError",
        "CacheError",
        "ConfigError",
        "DataError",
        "DiskFullError",
        "DownloadError",
        "FencedError",
        "HeadraceError",
        "JavaNotFoundError",
        "MalformedOffsetError",
        "NotCompactedError",
        "ObjectArchivedError",
        "ObjectChangedError",
        "ObjectVanishedError",
        "OffsetValueError",
        "OffsetsBodyError",
        "OffsetsError",
        "PipelineError",
        "PluginError",
        "PortInUseError",
        "RecordTooLargeError",
        "RetriableError",
        "SetupError",
        "SinkError",
        "SourceError",
        "TakenOverError",
        "TaskError",
        "TransactionTooLongError",
        "UnclaimedObjectError",
    ],
    "headrace.framework.handle": ["RunHandle", "start"],
    "headrace.framework.record": ["RecordBatch", "SourceRecord"],
    "headrace.framework.run": ["run"],
    "headrace.framework.schema": ["Schema", "SchemaAndValue"],
    "headrace.framework.sink": ["Sink"],
    "headrace.framework.splits": ["SourceReader", "Split", "SplitEnumerator", "SplitSource"],
    "headrace.framework.stop_rule": ["StopRule"],
    "headrace.framework.task": ["AbstractSourceTask", "TaskContext"],
    "headrace.offsets.entry": ["OffsetManagerEntry"],
    "headrace.offsets.key": ["OffsetManagerKey"],
    "headrace.offsets.manager": ["OffsetManager"],
    "headrace.transformers.base": ["Transformer"],
}

__getattr__ = lazy_names(__name__, {name: module for module, names in _HOMES.items() for name in names})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
