"""Whatever happens to a bucket and to the runs over it, in whatever order: nothing is lost and nothing doubled."""

import itertools
from contextlib import contextmanager
from functools import partial

import attrs
import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from headrace.framework.run import Run, on_threads
from headrace.testing.dying_sink import Death, DyingKafkaSink, DyingProducer, install_dying_sink
from headrace.testing.engines import Engine
from headrace.testing.s3_harness import S3Harness
from headrace.testing.trial import Trial, fresh_name

pytestmark = pytest.mark.slow

NAMES = [f"{letter}{number}" for letter in "amz" for number in range(4)]
PAGE = 3
LONG = 1000
SPLITS = st.sampled_from(["0", "0", "20", "50000"])


@attrs.define
class Version:
    """One content of one object, every line of it like no other."""

    lines: list[bytes]
    there: bool = True


def is_prefix_once(seen, lines):
    """Whether what was seen of a version is a beginning of it, each line once."""
    mine = set(lines)
    return [line for line in seen if line in mine] == lines[: sum(line in mine for line in seen)]


class Bucket(RuleBasedStateMachine):
    """Objects come, change and go; runs complete, or die before any of their calls to Kafka, at any number of tasks."""

    harness: S3Harness
    kafka: str

    def __init__(self):
        super().__init__()
        self.trial = Trial(
            harness=self.harness, engine=Engine("local"), bootstrap_servers=self.kafka, name=fresh_name("any-order")
        )
        self.current: dict[str, Version] = {}
        self.versions: list[Version] = []
        self.numbers = itertools.count()
        self.is_ever_split = False

    @rule(name=st.sampled_from(NAMES), lines=st.integers(0, 4), wide=st.booleans())
    def put(self, name, lines, wide):
        """An object comes, below or above what was read, or is overwritten."""
        pad = b"x" * (40_000 if wide else 1)
        version = Version([b'{"n":%d,"pad":"%s"}' % (next(self.numbers), pad) for _ in range(lines)])
        if name in self.current:
            self.current[name].there = False
        self.harness.add(name, version.lines)
        self.current[name] = version
        self.versions.append(version)

    @precondition(lambda self: self.current)
    @rule(data=st.data())
    def delete(self, data):
        """An object goes."""
        name = data.draw(st.sampled_from(sorted(self.current)))
        self.harness.client.delete_object(Bucket=self.harness.bucket, Key=name)
        self.current.pop(name).there = False

    @rule(tasks=st.integers(1, 3), rollup=st.sampled_from([0, 1, 4]), split=SPLITS)
    def run(self, tasks, rollup, split):
        """A run completes: everything that is there has been read."""
        self.trial.run(**self.props(tasks, rollup, split))
        self.check(complete=True)

    @rule(tasks=st.integers(1, 3), rollup=st.sampled_from([0, 1, 4]), split=SPLITS, step=st.integers(1, 9))
    def die_in_a_task(self, tasks, rollup, split, step):
        """A task dies, and what it has open stays open."""
        death = DyingKafkaSink.to_die_before(step)
        summary = self.trial.attempt(**self.props(tasks, rollup, split), sink="dying")
        assert death.has_come == (summary.state == "FAILED"), summary.error
        self.check(complete=not death.has_come)

    @rule(tasks=st.integers(1, 3), split=SPLITS, step=st.integers(1, 60))
    def die_in_the_driver(self, tasks, split, step):
        """The driver dies before one of its own commits: of a roll-up, of a cut, of what was joined."""
        death = Death(step)

        engine = partial(on_threads_with, death)
        summary = Run(props=self.trial.props(**self.props(tasks, 1, split)), bounded=True, engine=engine).go()
        assert summary.state == "COMPLETED" or death.has_come, summary.error
        self.check(complete=not death.has_come)

    def props(self, tasks, rollup, split):
        """The configuration of one run; a long object is not cut into thousands of parts."""
        if any(len(line) > LONG for version in self.current.values() for line in version.lines):
            split = "0" if split == "0" else "50000"
        self.is_ever_split |= split != "0"
        return {
            "split__size__bytes": split,
            "tasks__max": str(tasks),
            "offsets__rollup__min__entries": str(rollup),
            "aws__s3__fetch__page__size": str(PAGE),
            "transaction__boundary__max__records": "2",
            "transaction__timeout__ms": "5000",
        }

    def check(self, *, complete):
        """Each line at most once, in its order; and there, if a run has completed."""
        seen = self.trial.values()
        assert len(seen) == len(set(seen)), "doubled"
        for version in self.versions:
            assert self.is_ever_split or is_prefix_once(seen, version.lines)
            if complete and version.there:
                assert set(version.lines) <= set(seen), "lost"

    def teardown(self):
        """The last word: a run completes, and everything that is there has been read once."""
        self.run(tasks=2, rollup=0, split="0")


@contextmanager
def on_threads_with(death, config):
    """The local engine, with a driver whose producer dies."""
    with on_threads(config) as drive:

        def dying(coordinator):
            coordinator.claim._driver = DyingProducer(coordinator.claim._driver, death)
            drive(coordinator)

        yield dying


def test_nothing_is_lost_and_nothing_doubled_whatever_happens(
    s3_endpoint, kafka_bootstrap_servers, tmp_path, monkeypatch
):
    """Objects overwritten and deleted; runs that die at any step, rescaled, rolled up or not, in parts or whole."""
    install_dying_sink(tmp_path, monkeypatch)
    with S3Harness(s3_endpoint) as harness:
        machine = type("Machine", (Bucket,), {"harness": harness, "kafka": kafka_bootstrap_servers})
        run_state_machine_as_test(
            machine,
            settings=hypothesis.settings(
                max_examples=15,
                stateful_step_count=12,
                deadline=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            ),
        )
