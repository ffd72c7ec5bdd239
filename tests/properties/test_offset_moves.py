"""What is exported and imported again is what was there, whatever stands in the topic meanwhile."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.framework.driver.altering import OpenedConnector, body_entries
from headrace.offsets.body import write_body
from headrace.offsets.codec import encode_value, key_spellings
from headrace.offsets.kafka.altering import records_for_connect, records_instead
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.key import OffsetManagerKey

CONNECTOR = OpenedConnector.of(
    {
        "name": "c",
        "connector.class": "s3",
        "bootstrap.servers": "127.0.0.1:1",
        "topic": "t",
        "aws.s3.bucket.name": "bucket",
    }
)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
objects = st.builds(lambda key: OffsetManagerKey({"bucket": "b", "objectKey": key}), texts)
counts = st.integers(0, 2**63 - 1)
offsets = st.fixed_dictionaries(
    {},
    optional={
        "recordCount": counts,
        "etag": texts,
        "lastModified": counts,
        "complete": st.booleans(),
        "somebody else's": st.one_of(
            st.none(), st.booleans(), counts, texts, st.floats(allow_nan=False, allow_infinity=False)
        ),
    },
).filter(bool)


@st.composite
def views(draw):
    """A topic as whoever wrote it has left it: entries under one order of their key, the other, or both."""
    view = KafkaOffsetView("c")
    for key in draw(st.lists(objects, max_size=5)):
        for raw in key_spellings("c", key):
            if draw(st.booleans()):
                view.take_raw(raw, encode_value(draw(offsets)))
    return view


def stored(view):
    """What is known of each partition."""
    return dict(view.items())


def written(view, records):
    """The view after these records."""
    for raw, value in records:
        view.take_raw(raw, value)
    return view


@given(views(), views())
def test_import_of_an_export_is_an_identity(before, meanwhile):
    """Over whatever was stored since, an import leaves each entry as it was exported, with one key, and no other."""
    exported = write_body(body_entries(CONNECTOR, before))

    changes = CONNECTOR.changes(meanwhile.spelled(), CONNECTOR.read_entries(exported), others=True)
    written(meanwhile, records_instead(meanwhile.spelled(), changes.items()))

    assert stored(meanwhile) == stored(before)
    assert len(meanwhile.entries) == len(stored(before))
    assert write_body(body_entries(CONNECTOR, meanwhile)) == exported


@given(views(), st.dictionaries(objects, st.none() | offsets, max_size=4))
def test_set_changes_what_it_names(view, wanted):
    """Entries that are named are as the body has them, or gone; all others are untouched."""
    before = stored(view)
    changes = CONNECTOR.changes(view.spelled(), [(key.mapping, offset) for key, offset in wanted.items()], others=False)

    written(view, records_instead(view.spelled(), changes.items()))

    expected = {**before, **wanted}
    assert stored(view) == {key: offset for key, offset in expected.items() if offset is not None}


@given(views())
def test_each_order_of_a_key_says_the_same_to_connect(view):
    """What is written for Kafka Connect it finds whatever order it asks for, and nothing that is known changes."""
    before = stored(view)

    written(view, records_for_connect(view.spelled(), before.items()))

    assert stored(view) == before
    for key, offset in before.items():
        assert {view.entries[raw] for raw in key_spellings("c", key)} == {encode_value(offset)}
