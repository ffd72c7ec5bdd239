"""Which task reads which object: a strategy is a pure function, and its laws are tested.

- `base`: what a strategy promises, and a task's share of it.
- `balanced`: by size, on the driver; the default.
- `object_hash`: by Java's hash of the name, as Aiven's connectors do.
- `partition`: by the partition that the name speaks of.
"""

from headrace.framework.distribution.balanced import BalancedDistribution
from headrace.framework.distribution.base import ObjectDistributionStrategy, StorageObject, TaskShare
from headrace.framework.distribution.object_hash import ObjectHashDistribution
from headrace.framework.distribution.partition import PartitionDistribution

__all__ = [
    "BalancedDistribution",
    "ObjectDistributionStrategy",
    "ObjectHashDistribution",
    "PartitionDistribution",
    "StorageObject",
    "TaskShare",
]
