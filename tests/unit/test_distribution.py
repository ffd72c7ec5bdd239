"""Which task reads which object, and what becomes of an object that none would read."""

import json
from pathlib import Path

import pytest

from headrace.framework.compat import override
from headrace.framework.distribution import (
    BalancedDistribution,
    ObjectDistributionStrategy,
    ObjectHashDistribution,
    PartitionDistribution,
    StorageObject,
    TaskShare,
)
from headrace.framework.errors import ConfigError, UnclaimedObjectError
from headrace.framework.stage import Stage

VECTORS = json.loads((Path(__file__).parents[1] / "data/offset-vectors.json").read_text())["vectors"]


def by_partition(template):
    strategy = PartitionDistribution()
    strategy.configure({"file.name.template": template})
    return strategy


@pytest.mark.parametrize("strategy", [ObjectHashDistribution(), BalancedDistribution()])
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: ascii(vector["objectKey"]))
def test_an_object_goes_to_the_task_of_its_java_hash(strategy, vector):
    """An object goes to the task that it has in Aiven's connectors, negative hashes included."""
    assert strategy.task_for(StorageObject(vector["objectKey"]), 7) == vector["floorMod7"]


def test_an_object_keeps_its_task_when_it_grows():
    """Only the name decides by hash: the size and the partition of an object may change."""
    strategy = ObjectHashDistribution()

    assert strategy.task_for(StorageObject("logs 1", 5, 2), 10) == strategy.task_for(StorageObject("logs 1"), 10)


@pytest.mark.parametrize(("tasks", "expected"), [(1, 0), (4, 1), (3, 2), (5, 0)])
@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("bucket/topics/{{topic}}/{{partition}}/.*$", "bucket/topics/logs/5/part.gz"),
        ("topics/{{topic}}/partition={{partition}}/.*$", "topics/logs/partition=5/logs+5+0002.avro"),
        ("logs-{{partition}}.txt", "logs-0005.txt"),
    ],
)
def test_an_object_goes_to_the_task_of_its_partition(template, name, tasks, expected):
    """The partition in the name, modulo the number of tasks, is the task."""
    assert by_partition(template).task_for(StorageObject(name), tasks) == expected


def test_a_known_partition_needs_no_template():
    """A partition that the source knows of is taken as it is, whatever the name says."""
    assert PartitionDistribution().task_for(StorageObject("x", partition=5), 4) == 1
    assert by_partition("logs-{{partition}}").task_for(StorageObject("logs-3", partition=5), 4) == 1


@pytest.mark.parametrize("name", ["logs-one.txt", "other/readme.md", ""])
def test_an_object_without_a_partition_is_an_error_that_names_it(name):
    """An object that no task claims is an error with its name and the template, never silence."""
    share = TaskShare(by_partition("logs-{{partition}}.txt"), 0, 3)

    with pytest.raises(UnclaimedObjectError, match=r"file\.name\.template=logs-\{\{partition\}\}\.txt") as caught:
        share.is_mine(name)

    assert caught.value.where.stage is Stage.ASSIGN
    assert caught.value.where.object == name
    assert name in str(caught.value)


@pytest.mark.parametrize("index", [-1, 3])
def test_a_strategy_that_names_no_task_is_an_error(index):
    """An index that no task has is refused with the object's name, so that no object is left out."""

    class Wrong(ObjectDistributionStrategy):
        @override
        def __call__(self, obj, tasks):
            return index

    with pytest.raises(UnclaimedObjectError, match=rf"a/b: Wrong gives it to task {index} of 3"):
        TaskShare(Wrong(), 0, 3).is_mine("a/b")


@pytest.mark.parametrize("props", [{}, {"file.name.template": ".*"}, {"file.name.template": "{{topic}}"}])
def test_by_partition_needs_a_template_with_one(props):
    """A template that cannot give a partition is refused before anything is read."""
    with pytest.raises(ConfigError, match=r"file\.name\.template: (is empty|has no \{\{partition\}\})"):
        PartitionDistribution().configure(props)


def test_a_share_takes_an_object_or_its_name():
    """A task may ask by the name alone."""
    share = TaskShare(ObjectHashDistribution(), 5, 7)

    assert share.is_mine("logs-0-00112.gz")
    assert share.is_mine(StorageObject("logs-0-00112.gz", 10))


@pytest.mark.parametrize(("task", "tasks"), [(-1, 3), (3, 3), (0, 0)])
def test_a_share_of_no_task_is_refused(task, tasks):
    """A task that is none of them would read nothing: it is refused at once."""
    with pytest.raises(ValueError, match=r"task"):
        TaskShare(ObjectHashDistribution(), task, tasks)


def test_the_largest_objects_go_to_the_least_loaded_tasks():
    """By size, the largest first, each to the task that has the least; what is equal goes in the tasks' order."""
    objects = [StorageObject(name, size) for name, size in [("a", 1), ("b", 2), ("c", 3), ("d", 4)]]

    assert BalancedDistribution().plan(objects, 2) == {"d": 0, "c": 1, "b": 1, "a": 0}


def test_objects_of_unknown_size_are_dealt_out():
    """Objects without a size count as equal, so that every task gets some."""
    plan = BalancedDistribution().plan([StorageObject(str(number)) for number in range(6)], 3)

    assert sorted(plan.values()) == [0, 0, 1, 1, 2, 2]


def test_an_object_that_is_listed_twice_counts_once():
    """A listing that names an object twice gives it to one task, and its load is not counted again."""
    twice = [StorageObject("a", 5), StorageObject("a", 5), StorageObject("b", 4), StorageObject("c", 3)]

    assert BalancedDistribution().plan(twice, 2) == {"a": 0, "b": 1, "c": 1}


def test_what_is_given_stays_and_what_is_new_goes_where_the_load_is_least():
    """An object that a task has stays with it however unequal that is; new ones fill up the others."""
    objects = [StorageObject("old", 100), StorageObject("new", 10), StorageObject("newer", 10)]

    plan = BalancedDistribution().plan(objects, 3, given={"old": 2}, loads=[15, 0, 100])

    assert plan == {"old": 2, "new": 1, "newer": 1}


def test_a_plan_for_other_tasks_is_refused():
    """Loads or holders that do not fit the number of tasks are a mistake of the planner's, and said to be one."""
    strategy = BalancedDistribution()

    with pytest.raises(ValueError, match="there are 2 tasks and the loads of 3"):
        strategy.plan([], 2, loads=[0, 0, 0])
    with pytest.raises(ValueError, match="moving it is a new claim"):
        strategy.plan([StorageObject("a")], 2, given={"a": 2})
