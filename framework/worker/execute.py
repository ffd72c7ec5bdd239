"""From a plan to a report: what every engine runs, wherever it runs it."""

import logging
from collections.abc import Mapping
from typing import Any, Literal

from headrace.converters.base import Converter
from headrace.framework import registry
from headrace.framework.backoff import LONGEST_S, BackoffConfig
from headrace.framework.config import SourceCommonConfig
from headrace.framework.distribution import ObjectDistributionStrategy, TaskShare
from headrace.framework.errors import FencedError, HeadraceError, TaskError, Where
from headrace.framework.sink import Sink, SinkWriter
from headrace.framework.splits import Split, SplitSource
from headrace.framework.stage import Stage
from headrace.framework.task import AbstractSourceTask
from headrace.framework.worker.boundary import BoundaryRule
from headrace.framework.worker.dead_letters import DeadLetters
from headrace.framework.worker.kept import process_identity
from headrace.framework.worker.pipeline import Pipeline
from headrace.framework.worker.plan import Ended, TaskPlan, TaskReport
from headrace.framework.worker.runner import TaskRunner
from headrace.framework.worker.signals import TaskSignals
from headrace.framework.worker.split_task import SplitSourceTask

__all__ = ["boundary_rule", "configured", "execute", "make_converter", "make_sink", "make_source", "task_runner"]

log = logging.getLogger(__name__)

Source = SplitSource[Any] | AbstractSourceTask


def make_source(props: Mapping[str, str]) -> tuple[Source, SourceCommonConfig]:
    """The source that the configuration names, configured."""
    source: Source = registry.find("sources", props.get("connector.class", ""))()
    return source, source.configure(props)


def configured(props: Mapping[str, str]) -> SourceCommonConfig:
    """The configuration alone."""
    return make_source(props)[1]


def make_sink(config: SourceCommonConfig) -> Sink:
    """The sink that the configuration names, configured."""
    sink: Sink = registry.find("sinks", config.sink)()
    sink.configure(config)
    return sink


def boundary_rule(config: SourceCommonConfig) -> BoundaryRule:
    """When a task's transactions end."""
    return BoundaryRule(
        kind=config.transaction_boundary,
        interval_s=config.transaction_boundary_interval_ms / 1000,
        max_records=config.transaction_boundary_max_records,
        max_poll_records=config.max_poll_records,
    )


def execute(plan: TaskPlan, signals: TaskSignals) -> TaskReport:
    """Run one task for one micro-batch; `FencedError` is the only error that it raises."""
    report = _reported(plan, signals)
    report.worker = process_identity()
    return report


def _reported(plan: TaskPlan, signals: TaskSignals) -> TaskReport:
    try:
        return _executed(plan, signals)
    except FencedError:
        raise
    except HeadraceError as error:
        # Seen on the driver first, so this is an executor that differs from it: another package, another environment.
        log.exception("%s", Where(connector=plan.connector, task=plan.task_id))
        return TaskReport(task_id=plan.task_id, ended=Ended.FAILED, error=error)
    except BaseException as error:  # noqa: BLE001 - a task without a report would be planned again and again
        failure = TaskError(f"the task's thread died: {type(error).__name__}: {error}")
        failure.__cause__ = error
        return TaskReport(task_id=plan.task_id, ended=Ended.FAILED, error=failure)


def _executed(plan: TaskPlan, signals: TaskSignals) -> TaskReport:
    source, config = make_source(plan.props)
    task = _as_task(source, plan, signals)
    report = task_runner(task, plan, writer=make_sink(config).writer(plan), signals=signals, config=config).run()
    if isinstance(task, SplitSourceTask):
        task.tell(report)
    return report


def task_runner(
    task: AbstractSourceTask,
    plan: TaskPlan,
    *,
    writer: SinkWriter,
    signals: TaskSignals,
    config: SourceCommonConfig | None = None,
) -> TaskRunner:
    """The runner of a task: with the configuration given, or the common one read from the plan."""
    known = config or SourceCommonConfig.from_props(plan.props)
    writer.heed(lambda: signals.stopped_at)
    return TaskRunner(
        task=task,
        plan=plan,
        pipeline=_pipeline(known, writer, plan.task_id),
        writer=writer,
        rule=boundary_rule(known),
        share=_share(known, plan),
        signals=signals,
        backoff=BackoffConfig(longest_s=min(LONGEST_S, known.errors_retry_delay_max_ms / 1000)),
    )


def _as_task(source: Source, plan: TaskPlan, signals: TaskSignals) -> AbstractSourceTask:
    if isinstance(source, AbstractSourceTask):
        return source
    splits: list[Split] = [source.split_serializer.deserialize(version, data) for version, data in plan.splits]
    return SplitSourceTask(
        source,
        {split.split_id: split for split in splits},
        no_more_splits=plan.no_more_splits,
        events=plan.events,
        leave=signals.ask_leave,
    )


def _share(config: SourceCommonConfig, plan: TaskPlan) -> TaskShare:
    strategy: ObjectDistributionStrategy = registry.find("distributions", config.distribution_type)()
    strategy.configure(plan.props)
    return TaskShare(strategy, plan.task_id, plan.tasks_max)


def _pipeline(config: SourceCommonConfig, writer: SinkWriter, task_id: int) -> Pipeline:
    return Pipeline(
        make_converter(config, "key"),
        make_converter(config, "value"),
        writer,
        _dead_letters(config, writer, task_id) if config.is_tolerant else None,
    )


def _dead_letters(config: SourceCommonConfig, writer: SinkWriter, task_id: int) -> DeadLetters:
    """What becomes of bad records, with the names of what may find them to be so."""
    workers = {
        Stage.TRANSFORM: registry.find("transformers", config.input_format),
        Stage.CONVERT: registry.find("converters", config.value_converter, key="value.converter"),
        Stage.PRODUCE: type(writer),
    }
    return DeadLetters(
        connector=config.name,
        task_id=task_id,
        writer=writer,
        topic=config.dead_letter_topic,
        has_context=config.dead_letter_context,
        logs=config.errors_log_enable,
        logs_content=config.errors_log_messages,
        longest=config.max_record_bytes,
        classes={stage: f"{kind.__module__}.{kind.__qualname__}" for stage, kind in workers.items()},
    )


def make_converter(config: SourceCommonConfig, side: Literal["key", "value"]) -> Converter:
    """The converter that the configuration names for keys, or for values, configured."""
    name = config.key_converter if side == "key" else config.value_converter
    converter: Converter = registry.find("converters", name, key=f"{side}.converter")()
    converter.configure(config.converter_props(side), is_key=side == "key")
    return converter
