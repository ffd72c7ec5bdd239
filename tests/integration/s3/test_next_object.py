"""The object that comes next, which is asked for while the one before it is read."""

import threading

import attrs
import pytest

from headrace.sources.s3.ahead import WORTH_IT
from headrace.testing.engines import Engine
from headrace.testing.faulty_s3 import Answer, CutBody, Fault, Pass
from headrace.testing.s3_harness import S3Harness
from headrace.testing.trial import Trial, fresh_name

WITHIN_S = 30
LINES_OF_A_LARGE_ONE = 20_000
HALF_BYTES = 300_000


@attrs.frozen(kw_only=True)
class Until(Fault):
    """The answer is sent when something has happened."""

    event: threading.Event

    def after(self, request, response):  # noqa: ARG002 - the same for every answer
        assert self.event.wait(WITHIN_S)
        return response


@attrs.frozen(kw_only=True)
class Tell(Fault):
    """The request has come."""

    event: threading.Event
    then: Fault = attrs.field(factory=Fault)

    def before(self, request):
        self.event.set()
        return self.then.before(request)


@pytest.fixture
def trial(request, s3_endpoint, kafka_bootstrap_servers):
    with S3Harness(s3_endpoint) as harness:
        name = fresh_name(request.node.originalname)
        trial = Trial(harness=harness, engine=Engine("local"), bootstrap_servers=kafka_bootstrap_servers, name=name)
        for piece in ("a", "b"):
            trial.add(piece, LINES_OF_A_LARGE_ONE)
        yield trial


def of(key, *, rest=False):
    """The GETs of an object, or of the rest of it."""
    return lambda request: (
        request.is_object_get and request.path.endswith(f"/{key}") and ("range" in request.headers) is rest
    )


def keys(trial):
    return [request.path.rpartition("/")[2] for request in trial.harness.faulty.gets]


def half_until_the_next_is_asked_for(trial, what_that_meets):
    """The first object's bytes go on when the second one is asked for; that request meets a fault of its own."""
    asked = threading.Event()
    trial.harness.faulty.script(
        CutBody(HALF_BYTES, on=of("a")),
        Until(event=asked, on=of("a", rest=True)),
        Tell(event=asked, then=what_that_meets, on=of("b")),
    )


def test_it_is_asked_for_while_the_one_before_it_is_read(trial):
    """Its answer waits for its turn: it is one request, and every record comes once and in order."""
    half_until_the_next_is_asked_for(trial, Pass())

    summary = trial.run(tasks__max="1")

    assert sorted(keys(trial)) == ["a", "a", "b"]
    assert trial.values() == trial.everything()
    assert summary.objects == 2


def test_an_answer_that_is_none_is_asked_for_again_in_its_turn(trial):
    """What fails before its turn is no failure of the object's."""
    half_until_the_next_is_asked_for(trial, Answer(403, "AccessDenied"))

    summary = trial.run(tasks__max="1")

    assert sorted(keys(trial)) == ["a", "a", "b", "b"]
    assert trial.values() == trial.everything()
    assert summary.error is None


def test_behind_a_large_object_it_is_asked_for_in_its_turn(trial, monkeypatch):
    """No connection waits for as long as that takes: its first answer is the one that counts, and here a refusal."""
    monkeypatch.setattr("headrace.sources.s3.streams.SOON_READ_BYTES", HALF_BYTES)
    trial.harness.faulty.script(Answer(403, "AccessDenied", on=of("b")))

    summary = trial.attempt(tasks__max="1")

    assert (summary.state, keys(trial)) == ("FAILED", ["a", "b"])


def test_an_object_that_was_begun_before_is_read_by_itself(trial):
    """What is left of it is asked for in its turn, and nothing else of it but what shows its compression."""
    trial.run(tasks__max="1", transaction__boundary__max__records="1000", stop__rule="count:30000")
    trial.harness.faulty.requests.clear()
    trial.add("aa", LINES_OF_A_LARGE_ONE)

    trial.run(tasks__max="1")

    asked_for = {
        key: [get.headers.get("range") for get in trial.harness.faulty.gets if get.path.endswith(f"/{key}")]
        for key in ("aa", "b")
    }
    assert asked_for["aa"] == [None]
    assert None not in asked_for["b"]
    assert sorted(trial.values()) == sorted(trial.everything())


@pytest.mark.parametrize("cut", [None, HALF_BYTES])
def test_where_many_are_waiting_those_of_up_to_a_megabyte_are_fetched_whole(trial, cut):
    """Each is one request, made before its turn; where one breaks, the object is asked for again in its turn."""
    for number in range(WORTH_IT + 2):
        trial.add(f"m-{number}", LINES_OF_A_LARGE_ONE)
    asked = threading.Event()
    if cut is not None:
        trial.harness.faulty.script(CutBody(cut, on=of("m-0")))
    trial.harness.faulty.script(Until(event=asked, on=of("a")), Tell(event=asked, on=of("m-1")))

    summary = trial.run(tasks__max="1")

    again = [] if cut is None else ["m-0"]
    assert sorted(keys(trial)) == sorted([*again, "a", "b", *(f"m-{number}" for number in range(WORTH_IT + 2))])
    assert trial.values() == trial.everything()
    assert summary.objects == WORTH_IT + 4
