"""What a run asks of its servers and of Python for so many records: counts, which hold on every machine."""

import sys
import threading
from collections import Counter

import pytest

from headrace.offsets.codec import key_prefix
from headrace.testing import read_topic
from headrace.testing.engines import Engine
from headrace.testing.s3_harness import S3Harness
from headrace.testing.trial import Trial, fresh_name, records_of

COUNT, OBJECTS = 20_000, 4
PYTHON_CALLS_PER_THOUSAND = 150
PYTHON_CALLS_PER_OBJECT = 420


@pytest.fixture
def trial(request, s3_endpoint, kafka_bootstrap_servers):
    with S3Harness(s3_endpoint) as harness:
        name = fresh_name(request.node.originalname)
        yield Trial(harness=harness, engine=Engine("local"), bootstrap_servers=kafka_bootstrap_servers, name=name)


@pytest.fixture
def calls():
    """The calls on the threads that pull tasks, as they happen; sys.setprofile has one user at a time."""
    counted = Counter()

    def note(_frame, event, _argument):
        counted["call"] += event == "call"

    def only_pumps(frame, event, argument):
        name = threading.current_thread().name
        sys.setprofile(note if name.startswith("headrace-") and "close" not in name else None)
        note(frame, event, argument)

    threading.setprofile(only_pumps)
    yield counted
    threading.setprofile(None)


def asked(trial):
    """What has been asked of the servers so far: requests, records in any transaction, and records of progress."""
    faulty, connector = trial.harness.faulty, trial.props()["name"]
    keys = [message.key() for message in read_topic(trial.bootstrap_servers, f"{trial.name}-offsets")]
    offsets = sum(key is not None and key.startswith(key_prefix(connector)) for key in keys)
    sent = len(read_topic(trial.bootstrap_servers, trial.topic, isolation="read_uncommitted"))
    return Counter(gets=len(faulty.gets), lists=len(faulty.lists), offsets=offsets, sent=sent)


def cost(trial, calls, name, records, objects=OBJECTS):
    """What one more run, of so many records in new objects, has asked for."""
    for number in range(objects):
        trial.put(f"{name}-{number}", records_of(name, records // objects, start=number * records))
    before = asked(trial)
    calls.clear()
    summary = trial.run(transaction__boundary__interval__ms="29000")
    assert (summary.records, summary.transactions) == (records, 1)
    return Counter(calls) + asked(trial) - before


def test_many_records_cost_what_few_do(trial, calls):
    """A record more is sent once, and calls no function of Python's, asks nothing of S3, and has no offset written."""
    trial.add("warm", 1)
    trial.run()
    few = cost(trial, calls, "few", OBJECTS)
    many = cost(trial, calls, "many", OBJECTS + COUNT)

    assert (many["gets"], many["lists"]) == (few["gets"], few["lists"]) == (OBJECTS, 1)
    assert many["offsets"] == few["offsets"] == OBJECTS
    assert many["sent"] - few["sent"] == COUNT
    assert (many["call"] - few["call"]) * 1000 / COUNT <= PYTHON_CALLS_PER_THOUSAND


def test_an_object_costs_so_many_calls_and_no_more(trial, calls):
    """A small object more is one request, one offset, and its calls of Python's functions do not grow unseen."""
    trial.add("warm", 1)
    trial.run()
    few = cost(trial, calls, "few", OBJECTS)
    many = cost(trial, calls, "many", OBJECTS + 200, objects=OBJECTS + 200)

    assert (many["gets"], many["offsets"]) == (OBJECTS + 200, OBJECTS + 200)
    assert (many["call"] - few["call"]) / 200 <= PYTHON_CALLS_PER_OBJECT


def test_a_small_object_is_asked_for_once(trial):
    """Of many small objects, fetched before their turn, each is one GET, and every record comes once and in order."""
    for number in range(60):
        trial.add(f"piece-{number:02d}", 3)
    summary = trial.run()

    assert summary.records == 180
    assert len(trial.harness.faulty.gets) == 60
    assert trial.values() == trial.everything()
