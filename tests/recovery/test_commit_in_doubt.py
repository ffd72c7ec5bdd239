"""Commits whose answer is late or lost: they have happened, and nothing is sent twice for that."""

import threading
import time

import pytest

from headrace.framework.handle import RunHandle
from headrace.framework.run import Run, on_threads
from headrace.testing import EmbeddedKafka, S3Harness
from headrace.testing.engines import Engine
from headrace.testing.kafka_proxy import END_TXN, KafkaProxy
from headrace.testing.trial import Trial, fresh_name

WITHIN_S = 60
SEVERAL_CALLS_S = 1.0


@pytest.fixture(scope="module")
def proxied():
    with KafkaProxy() as proxy, EmbeddedKafka(port=proxy.broker_port, properties=proxy.broker_properties) as kafka:
        yield proxy, kafka


@pytest.fixture
def trial(proxied, s3_endpoint, request):
    with S3Harness(s3_endpoint) as harness:
        trial = Trial(
            harness=harness,
            engine=Engine("local"),
            bootstrap_servers=proxied[1].bootstrap_servers,
            name=fresh_name(request.function.__name__.removeprefix("test_")),
        )
        for piece in ("one", "two", "zwei"):
            trial.add(piece, 20)
        yield trial


@pytest.fixture
def impatient(monkeypatch):
    """One call of the client library gives up soon, so that a commit takes several."""
    monkeypatch.setattr("headrace.offsets.kafka.producer.CALL_S", SEVERAL_CALLS_S / 5)


def start(trial):
    """Start a bounded run on a thread of its own."""
    props = trial.props(transaction__boundary="object", transaction__timeout__ms="5000")
    return RunHandle(Run(props=props, bounded=True, engine=on_threads))


def of_task(trial):
    """What only a request of the task's own producer contains: the end of its transactional id."""
    return f"{trial.name}-0".encode()


def assert_each_once(trial, run):
    summary = run.await_termination(WITHIN_S)
    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert trial.values() == trial.everything()
    assert trial.run().records == 0


@pytest.mark.usefixtures("impatient")
def test_a_commit_whose_answer_is_late_is_asked_for_again(trial, proxied, caplog):
    """A commit that has timed out is called again until its answer comes; it is not aborted, and nothing is doubled."""
    held = proxied[0].hold(END_TXN, containing=of_task(trial))
    run = start(trial)

    assert held.reached.wait(WITHIN_S)
    threading.Event().wait(SEVERAL_CALLS_S)
    held.release.set()

    assert_each_once(trial, run)
    assert "planned again" not in caplog.text


def test_a_commit_whose_answer_is_lost_has_happened_once(trial, proxied):
    """A connection that breaks between a commit and its answer changes nothing: each record is there once."""
    held = proxied[0].hold(END_TXN, containing=of_task(trial), drop=True)
    run = start(trial)

    assert held.reached.wait(WITHIN_S)
    held.release.set()

    assert_each_once(trial, run)


@pytest.mark.usefixtures("impatient")
def test_a_commit_whose_answer_never_comes_is_found_on_the_topic(trial, proxied, monkeypatch, caplog):
    """When asking again does not end, the producer is dropped and a new one reads what has been committed."""
    monkeypatch.setattr("headrace.offsets.kafka.producer.BEYOND_TRANSACTION_S", -4.0)
    held = proxied[0].hold(END_TXN, containing=of_task(trial))
    run = start(trial)

    assert held.reached.wait(WITHIN_S)
    try:
        assert_each_once(trial, run)
        assert "planned again" in caplog.text
    finally:
        held.release.set()


def test_what_comes_next_is_read_while_a_commit_lasts(trial, proxied):
    """The second object has been asked for before the first one's commit is answered, and goes out once behind it."""
    held = proxied[0].hold(END_TXN, containing=of_task(trial))
    run = start(trial)
    assert held.reached.wait(WITHIN_S)

    deadline = time.monotonic() + WITHIN_S
    while len(gets := trial.harness.faulty.gets) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    asked_for = len(gets)
    held.release.set()

    assert asked_for == 2
    assert_each_once(trial, run)
