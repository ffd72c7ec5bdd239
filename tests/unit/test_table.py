"""Objects that are held column by column."""

from headrace.framework.table import Table, Texts

TABLE = Table(("a", "b"), [[1, 2, 3], ["x", None, "z"]], 3)
ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "z"}]


def test_a_table_is_the_list_of_its_objects():
    """Its length, its objects in order, one by one and in slices are those of a list of them."""
    assert len(TABLE) == 3
    assert list(TABLE) == ROWS
    assert [TABLE[0], TABLE[-1]] == [ROWS[0], ROWS[-1]]
    assert list(TABLE[1:]) == ROWS[1:]
    assert len(TABLE[5:]) == 0
    assert TABLE[:] == TABLE
    assert TABLE[1:] != TABLE


def test_objects_without_fields_are_counted():
    """A table without columns still has as many objects as it says."""
    assert list(Table((), (), 2)) == [{}, {}]
    assert len(Table((), (), 5)[2:4]) == 2


def test_texts_are_the_list_of_their_strings():
    """A column of UTF-8 has the texts that it stands for, one by one, in slices and in a table's objects."""
    texts = Texts([b"x", "é".encode(), b""])
    assert [*texts] == [texts[0], texts[1], texts[-1]] == ["x", "é", ""]
    assert [*texts[1:]] == ["é", ""]
    assert len(texts[:2]) == 2
    assert list(Table(("a",), [texts], 3)[1:]) == [{"a": "é"}, {"a": ""}]
