"""By the hash of the object's name."""

from headrace.framework.compat import override
from headrace.framework.distribution.base import ObjectDistributionStrategy, StorageObject
from headrace.offsets.hashing import java_hash_code

__all__ = ["ObjectHashDistribution"]


class ObjectHashDistribution(ObjectDistributionStrategy):
    """Java's hash of the name: an object goes to the same task as in Aiven's connectors."""

    @override
    def __call__(self, obj: StorageObject, tasks: int) -> int:
        return java_hash_code(obj.name) % tasks
