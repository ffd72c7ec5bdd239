import json
import sys
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from headrace.converters import json_text
from headrace.converters.json_text import to_json
from headrace.framework.connect_text import java_double

TEXT = st.text() | st.text(alphabet='a\\"\x0b\x7f\u0800\uffff\U0001f600u0')
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


@given(VALUES)
@example({"a": 1e7, "b": [1e-3, 0.0009, 9999999.9]})
@example(["\x1f", "\\u001f", "\U0010ffff"])
@example({"n": None, "deep": [[{"x": 1e16}]]})
def test_json_is_the_same_with_and_without_orjson(value):
    """The bytes on the topic do not depend on what is installed."""
    quick = to_json(value)
    json_text.quick_dumps.cache_clear()
    with patch.dict(sys.modules, {"orjson": None}):
        plain = to_json(value)
    json_text.quick_dumps.cache_clear()

    assert quick == plain


@given(VALUES)
def test_json_says_what_the_value_is(value):
    """Whatever is written as JSON is read back as the same value, compact and on one line."""
    text = to_json(value)

    assert json.loads(text) == value
    assert b"\n" not in text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_come_back(value):
    """A double in Java's form is read back as the same double, with at least one digit after the point."""
    text = java_double(value)
    mantissa, _, exponent = text.partition("E")

    assert float(text) == value
    assert "." in mantissa
    assert bool(exponent) == (value != 0 and not 1e-3 <= abs(value) < 1e7)
