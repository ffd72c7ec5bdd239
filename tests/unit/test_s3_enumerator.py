"""Objects that come back from their readers: where they go."""

import pytest

from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.offsets.memory import MemoryOffsetStore
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.enumerator import S3Enumerator
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.splits import S3Split


class Idle(S3Enumerator):
    """It lists nothing: the objects are the test's own."""

    def start(self):
        """Nothing to begin."""


class Source:
    """As much of a source as the host needs."""

    def __init__(self, distribution, **props):
        self.config = S3Config.from_props(
            {
                "name": "orders",
                "connector.class": "s3",
                "bootstrap.servers": "127.0.0.1:9",
                "aws.s3.bucket.name": "bucket",
                "topic": "t",
                "distribution.type": distribution,
                **{name.replace("__", "."): value for name, value in props.items()},
            }
        )

    def create_enumerator(self, context, state):
        return Idle(context, self.config, state)


def split(key, size):
    return S3Split(S3Object(bucket="bucket", key=key, etag="e", size=size, last_modified=0))


@pytest.fixture
def hosted():
    def host(distribution, *given):
        """A host of three readers that have these splits."""
        made = EnumeratorHost("orders", 3, MemoryOffsetStore(), bounded=True)
        made.start(Source(distribution), None)
        for one, reader_id in given:
            made.assign_split(one, reader_id)
        return made

    return host


def keys(host):
    return [[one.object.key for one in host.assigned.get(reader_id, {}).values()] for reader_id in range(3)]


def test_balanced_gives_them_to_the_least_loaded_of_the_others(hosted):
    """The largest first, and none to the reader that had them, though it has nothing any more."""
    lost = [split("small", 1), split("large", 5)]
    host = hosted("balanced", *((one, 0) for one in lost), (split("b", 3), 1), (split("c", 4), 2))

    host.hand_back(0, lost)

    assert keys(host) == [[], ["b", "large"], ["c", "small"]]


def test_other_strategies_stay_by_their_rule(hosted):
    """A strategy that is a function of the name gives an object to the same task again."""
    one = split("a", 1)  # Java's hash of "a" is 97
    host = hosted("object_hash", (one, 97 % 3))

    host.hand_back(97 % 3, [one])

    assert keys(host) == [[], ["a"], []]


@pytest.mark.parametrize(
    ("known", "start_key", "state", "covers_all"),
    [
        (None, None, {"scope": "s3://bucket/"}, True),
        (None, "m", {"scope": "s3://bucket/", "startKey": "m"}, True),
        ({"scope": "s3://bucket/", "startKey": "a"}, "m", {"scope": "s3://bucket/", "startKey": "a"}, False),
        ({"scope": "s3://bucket/", "startKey": "m"}, "a", {"scope": "s3://bucket/", "startKey": "a"}, True),
        ({"scope": "s3://bucket/", "startKey": "a"}, None, {"scope": "s3://bucket/"}, True),
        ({"scope": "s3://bucket/"}, "m", {"scope": "s3://bucket/"}, False),
        ({"scope": "s3://bucket/*"}, "m", {"scope": "s3://bucket/"}, False),
        ({"scope": "s3://bucket/*"}, None, {"scope": "s3://bucket/"}, True),
        ({"scope": "s3://bucket/in/"}, None, {"scope": "s3://bucket/"}, True),
        ({"scope": "s3://other/"}, None, {"scope": "s3://"}, False),
    ],
)
def test_what_earlier_runs_have_listed_is_remembered(known, start_key, state, covers_all):
    """A listing forgets only if no earlier one saw more; a state of before (`*`) does not say where that began."""
    props = {} if start_key is None else {"native__start__key": start_key}
    made = EnumeratorHost("orders", 3, MemoryOffsetStore(), bounded=True)
    enumerator = Source("balanced", **props).create_enumerator(made, known)
    assert enumerator.snapshot_state() == state
    assert enumerator._covers_all is covers_all
