"""By the Kafka partition that the object's name speaks of."""

from collections.abc import Mapping

from headrace.framework.compat import override
from headrace.framework.distribution.base import ObjectDistributionStrategy, StorageObject
from headrace.framework.errors import ConfigError, Fault, UnclaimedObjectError, Where
from headrace.framework.naming import FILE_NAME_TEMPLATE, NameTemplate
from headrace.framework.stage import Stage

__all__ = ["PartitionDistribution"]


class PartitionDistribution(ObjectDistributionStrategy):
    """All objects of a partition go to one task, so that one task has them in order.

    The partition is the object's own where it is known, and is looked for in its name by `file.name.template`
    otherwise. An object without one is an error: with Aiven's connectors it is read by nobody, silently.
    """

    _template: NameTemplate | None = None

    @override
    def configure(self, props: Mapping[str, str]) -> None:
        text = props.get(FILE_NAME_TEMPLATE, "")
        template = NameTemplate.parse(text)
        if "partition" not in template.variables:
            message = "has no {{partition}}, which distribution.type=partition needs"
            raise ConfigError([Fault(FILE_NAME_TEMPLATE, text, message)])
        self._template = template

    @override
    def __call__(self, obj: StorageObject, tasks: int) -> int:
        partition = obj.partition
        if partition is None and self._template is not None:
            parts = self._template.match(obj.name)
            partition = None if parts is None else parts.partition
        if partition is None:
            template = self._template.text if self._template else None
            raise UnclaimedObjectError(
                f"{FILE_NAME_TEMPLATE}={template} finds no partition in its name, so no task would read it: "
                "mend the template, narrow the prefix, or use distribution.type=object_hash",
                Where(stage=Stage.ASSIGN, object=obj.name),
            )
        return partition % tasks
