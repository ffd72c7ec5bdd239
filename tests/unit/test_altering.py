"""What is written when entries are stored from outside of a run."""

import pytest

from headrace.framework.driver.altering import OpenedConnector
from headrace.framework.errors import OffsetsBodyError, OffsetsError
from headrace.offsets.codec import encode_key
from headrace.offsets.kafka.altering import refuse_unstopped
from headrace.offsets.kafka.records import Generation
from headrace.offsets.kafka.spellings import Spellings
from headrace.offsets.key import OffsetManagerKey

TASK = """
from headrace import AbstractSourceTask, SourceCommonConfig
class Mine(AbstractSourceTask):
    def configure(self, props): return SourceCommonConfig.from_props(props)
    def get_iterator(self, backoff): return iter(())
    def close_resources(self): pass
"""
COMMON = {"name": "c", "bootstrap.servers": "127.0.0.1:1", "topic": "t"}
FORWARDS = OffsetManagerKey({"bucket": "b", "objectKey": "k"})
BACKWARDS = OffsetManagerKey({"objectKey": "k", "bucket": "b"})


@pytest.fixture
def s3():
    return OpenedConnector.of({**COMMON, "connector.class": "s3", "aws.s3.bucket.name": "bucket"})


@pytest.fixture
def task(tmp_path, monkeypatch):
    (tmp_path / "a_task_of_mine.py").write_text(TASK)
    monkeypatch.syspath_prepend(tmp_path)
    return OpenedConnector.of({**COMMON, "connector.class": "a_task_of_mine:Mine"})


def known(*keys):
    return Spellings.of("c", [encode_key("c", key.mapping) for key in keys])


def orders(changes):
    return [list(key.mapping) for key in changes]


def test_a_source_has_its_own_order_of_names(s3):
    """Whatever the order in the body or in the topic, an S3 key is written bucket first."""
    entry = (BACKWARDS.mapping, {"recordCount": 1})
    assert orders(s3.changes(known(), [entry], others=False)) == [["bucket", "objectKey"]]
    assert orders(s3.changes(known(BACKWARDS), [entry], others=False)) == [["bucket", "objectKey"]]


def test_a_task_that_says_nothing_keeps_the_order_that_is_stored(task):
    """Where only the task knows how it writes its keys, an entry is changed under the key that it has."""
    entry = (FORWARDS.mapping, {"recordCount": 1})
    assert orders(task.changes(known(BACKWARDS), [entry], others=False)) == [["objectKey", "bucket"]]
    assert orders(task.changes(known(), [entry], others=False)) == [["bucket", "objectKey"]]


def test_what_is_not_named_is_forgotten_only_if_that_is_asked(s3):
    """An import forgets what its body does not name, a set leaves it alone."""
    entry = ({"bucket": "b", "objectKey": "other"}, {"recordCount": 1})
    assert s3.changes(known(BACKWARDS), [entry], others=True) == {OffsetManagerKey(entry[0]): entry[1], FORWARDS: None}
    assert s3.changes(known(BACKWARDS), [entry], others=False) == {OffsetManagerKey(entry[0]): entry[1]}


def test_a_task_that_says_nothing_takes_any_flat_map(task):
    """There is nobody to ask whether an entry makes sense, so it passes if it can be stored."""
    assert len(task.read_entries('{"offsets": [{"partition": {"any": 1}, "offset": {"thing": "goes"}}]}')) == 1


def test_nothing_to_change_is_a_fault(s3):
    """An empty body is refused where it would change nothing, as Kafka Connect does."""
    with pytest.raises(OffsetsBodyError, match="there is nothing to change"):
        s3.alter([], force=False)


@pytest.mark.parametrize(
    ("generation", "force", "unrun"),
    [
        (Generation(generation=3, stopped=True), False, False),
        (Generation(generation=3), True, False),
        (Generation(), True, False),
        (Generation(), False, True),
    ],
)
def test_who_may_change_offsets(generation, force, unrun):
    """Whoever finds the connector stopped, or uses force, or comes before its first run where that is allowed."""
    refuse_unstopped("c", generation, force=force, unrun=unrun)


@pytest.mark.parametrize(
    ("generation", "unrun", "remedy"),
    [
        (Generation(generation=3), False, "stop the run of c, or use --force"),
        (Generation(generation=3), True, "stop the run of c, or use --force"),
        (Generation(), False, "stop it there; then use --force"),
    ],
)
def test_who_may_not(generation, unrun, remedy):
    """A run that may go on, here or in Kafka Connect, keeps its offsets, and the refusal says what to do."""
    with pytest.raises(OffsetsError, match="must be in the STOPPED state") as caught:
        refuse_unstopped("c", generation, force=False, unrun=unrun)
    assert remedy in str(caught.value)
