"""Which entry is believed, of those under the several orders of one key."""

import itertools

import pytest

from headrace.offsets.merge import merged

OLD = {"etag": "e1", "lastModified": 1}
NEW = {"etag": "e2", "lastModified": 2}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param([{"recordCount": 1}, {"recordCount": 2}], 1, id="the larger count"),
        pytest.param([{"recordCount": 0}, {}], 0, id="no count is less than none"),
        pytest.param([{"recordCount": "9"}, {"recordCount": 1}], 1, id="a text counts nothing"),
        pytest.param([{"recordCount": 1, "etag": "e"}, {"recordCount": 9}], 0, id="with an etag before without"),
        pytest.param(
            [{**OLD, "recordCount": 1}, {**OLD, "recordCount": 2}, {"recordCount": 9}], 1, id="of one version"
        ),
        pytest.param([{**OLD, "recordCount": 9}, {**NEW, "recordCount": 2}], 1, id="the newer version"),
        pytest.param(
            [{"etag": "e1", "lastModified": 5, "recordCount": 1}, {**OLD, "recordCount": 2}],
            1,
            id="touched, same version",
        ),
        pytest.param(
            [{**OLD, "recordCount": 2}, {**OLD, "recordCount": 2, "complete": True}],
            1,
            id="the same place, but the end",
        ),
    ],
)
def test_whom_to_believe(known, expected):
    """One with an etag before one without, a newer version before an older, then the larger count, in any order."""
    for order in itertools.permutations(known):
        assert merged(order) == known[expected]


def test_what_comes_out_is_a_copy():
    """The answer can be changed without changing what it was made of."""
    known = {"recordCount": 1}
    merged([known])["recordCount"] = 2
    assert known == {"recordCount": 1}
