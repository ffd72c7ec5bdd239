"""What holds of every strategy: each object is exactly one task's, in every process and in every run."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.framework.distribution import (
    BalancedDistribution,
    ObjectHashDistribution,
    PartitionDistribution,
    StorageObject,
    TaskShare,
)

TEMPLATE = {"file.name.template": "-{{partition}}$"}
STRATEGIES = [BalancedDistribution, ObjectHashDistribution, PartitionDistribution]

names = st.builds("{}-{}".format, st.text(), st.integers(0, 2**31 - 1))
sizes = st.integers(0, 2) | st.integers(0, 2**40)
objects = st.builds(StorageObject, names, sizes, st.none() | st.integers(0, 2**31 - 1))
many_objects = st.lists(objects, unique_by=lambda obj: obj.name, max_size=40)
task_counts = st.integers(1, 12)


def made(strategy_class):
    strategy = strategy_class()
    strategy.configure(TEMPLATE)
    return strategy


@pytest.mark.parametrize("strategy_class", STRATEGIES)
@given(found=many_objects, tasks=task_counts)
def test_shares_are_disjoint_and_their_union_is_everything(strategy_class, found, tasks):
    """Tasks that know nothing of each other, each with a strategy of its own, have every object exactly once."""
    shares = [TaskShare(made(strategy_class), task, tasks) for task in range(tasks)]

    taken = [obj.name for share in shares for obj in found if share.is_mine(obj)]

    assert sorted(taken) == sorted(obj.name for obj in found)


@pytest.mark.parametrize("strategy_class", STRATEGIES)
@given(obj=objects, tasks=task_counts)
def test_an_answer_does_not_depend_on_what_was_asked_before(strategy_class, obj, tasks):
    """A strategy that has answered for other numbers of tasks gives what a fresh one gives."""
    strategy = made(strategy_class)
    strategy.task_for(obj, tasks + 1)
    strategy.task_for(StorageObject("other-1"), tasks)

    assert strategy.task_for(obj, tasks) == made(strategy_class).task_for(obj, tasks)


PROGRAM = """
import json, sys
from headrace.framework import distribution

asked = json.load(sys.stdin)
answers = []
for name in asked["strategies"]:
    strategy = getattr(distribution, name)()
    strategy.configure(asked["props"])
    answers.append([strategy.task_for(distribution.StorageObject(obj), 7) for obj in asked["names"]])
objects = [distribution.StorageObject(name, len(name)) for name in asked["names"]]
json.dump([answers, distribution.BalancedDistribution().plan(objects, 7)], sys.stdout)
"""


def test_every_process_gives_the_same_answers():
    """Two processes whose `hash()` differs share out the same objects in the same way."""
    asked = {
        "strategies": [strategy_class.__name__ for strategy_class in STRATEGIES],
        "props": TEMPLATE,
        "names": [f"{letter * 3}é😀/part-{number}" for letter in "abcxyz" for number in range(20)],
    }

    answers = [
        subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM],
            input=json.dumps(asked),
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert answers[0] == answers[1]
    assert len(set(json.loads(answers[0])[0][1])) == 7


@given(many_objects, task_counts, st.randoms())
def test_a_plan_is_balanced_whatever_the_order(found, tasks, random):
    """No task gets more than an equal share and the largest object, and the order of listing changes nothing."""
    plan = BalancedDistribution().plan(found, tasks)
    shuffled = random.sample(found, len(found))

    loads = [sum(obj.weight for obj in found if plan[obj.name] == task) for task in range(tasks)]

    assert BalancedDistribution().plan(shuffled, tasks) == plan
    assert plan.keys() == {obj.name for obj in found}
    largest = max((obj.weight for obj in found), default=0)
    assert max(loads) * tasks <= sum(loads) + largest * tasks


@given(many_objects, many_objects, task_counts)
def test_a_plan_is_sticky(first, later, tasks):
    """What was given stays where it is when more is found, and only the new is added to the least loaded tasks."""
    strategy = BalancedDistribution()
    given_before = strategy.plan(first, tasks)
    loads = [sum(obj.weight for obj in first if given_before[obj.name] == task) for task in range(tasks)]
    new = [obj for obj in later if obj.name not in given_before]

    plan = strategy.plan([*first, *new], tasks, given=given_before, loads=loads)

    assert {name: plan[name] for name in given_before} == given_before
    added = [sum(obj.weight for obj in new if plan[obj.name] == task) for task in range(tasks)]
    grown = [load + more for load, more in zip(loads, added, strict=True) if more]
    largest = max((obj.weight for obj in new), default=0)
    assert all(load * tasks <= sum(loads) + sum(added) + largest * tasks for load in grown)
