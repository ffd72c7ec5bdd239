"""What each kind of option takes."""

import enum

import pytest

from headrace.framework import parsers


class Size(enum.StrEnum):
    SMALL = "small"
    LARGE = "large"
    HUGE = "huge"


ACCEPTED = [
    (parsers.text(), "a b", "a b"),
    (parsers.text("[ab]+"), "abba", "abba"),
    (parsers.integer(), "-7", -7),
    (parsers.integer(), "2147483647", 2147483647),
    (parsers.integer(at_least=1, at_most=1000), "+1000", 1000),
    (parsers.milliseconds(), "0", 0),
    (parsers.milliseconds(at_least=-1), "-1", -1),
    (parsers.decimal(at_least=0, at_most=1), "2.5e-1", 0.25),
    (parsers.boolean(), "TRUE", True),
    (parsers.boolean(), "false", False),
    (parsers.choice("One", "two"), "ONE", "One"),
    (parsers.choice("one", "two", other_names={"zwei": "two"}), "Zwei", "two"),
    (parsers.member(Size), "Large", Size.LARGE),
    (parsers.member(Size, other_names={"big": Size.LARGE}), "big", Size.LARGE),
    (parsers.plugin("converters", "json"), "JSON", "json"),
    (parsers.plugin("converters", "json", also=("org.example.Json",)), "org.example.Json", "org.example.Json"),
    (parsers.plugin("sources", "s3"), "my.module:My.Class", "my.module:My.Class"),
    (parsers.names(), "a, b ,c", ("a", "b", "c")),
    (parsers.names(), "", ()),
    (parsers.topic_name(), "orders.v1_a-B", "orders.v1_a-B"),
    (parsers.servers(), "a:9092, [::1]:9093 ,SSL://b.example:9094", "a:9092,[::1]:9093,SSL://b.example:9094"),
]
REFUSED = [
    (parsers.text(), ""),
    (parsers.text("[ab]+"), "abc"),
    (parsers.integer(), "1.0"),
    (parsers.integer(), "1_000"),
    (parsers.integer(), "٣"),
    (parsers.integer(), "2147483648"),
    (parsers.integer(), "9" * 5000),
    (parsers.integer(at_least=1), "0"),
    (parsers.integer(at_least=1, at_most=1000), "1001"),
    (parsers.milliseconds(), "-1"),
    (parsers.milliseconds(), "5s"),
    (parsers.decimal(), "nan"),
    (parsers.decimal(), "1e999"),
    (parsers.decimal(at_most=1), "1.1"),
    (parsers.boolean(), "yes"),
    (parsers.choice("one", "two"), "three"),
    (parsers.member(Size), ""),
    (parsers.plugin("converters", "json"), "jsno"),
    (parsers.plugin("converters", "json"), "my.module:Class"),
    (parsers.plugin("sources", "s3"), "my-module:Class"),
    (parsers.names(), "a,,b"),
    (parsers.secret(), ""),
    (parsers.topic_name(), ".."),
    (parsers.topic_name(), "a/b"),
    (parsers.topic_name(), "x" * 250),
    (parsers.servers(), "localhost"),
    (parsers.servers(), "localhost:0"),
    (parsers.servers(), "localhost:99999"),
    (parsers.servers(), ","),
]


@pytest.mark.parametrize(("parser", "given", "value"), ACCEPTED)
def test_accepted(parser, given, value):
    """A parser makes the value of a text that is as it should be."""
    assert parser(given) == value
    assert type(parser(given)) is type(value)


@pytest.mark.parametrize(("parser", "given"), REFUSED)
def test_refused(parser, given):
    """A parser refuses any other text with a message that says what is allowed and never holds the text."""
    with pytest.raises(ValueError, match=r"^must |^not yet") as caught:
        parser(given)
    assert not given or f"{given!r}" not in str(caught.value)


@pytest.mark.parametrize(
    ("parser", "given"),
    [
        (parsers.choice("one", not_yet=("two",)), "TWO"),
        (parsers.member(Size, not_yet=(Size.HUGE,)), "huge"),
        (parsers.plugin("converters", "json", not_yet=("avro",)), "Avro"),
        (parsers.plugin("converters", "json", not_yet=("io.example.Avro",)), "io.example.Avro"),
    ],
)
def test_not_yet(parser, given):
    """A value that is known and does not work so far is refused with these words, and with what does work."""
    with pytest.raises(ValueError, match=r"not yet: .*what works is "):
        parser(given)


def test_limits_are_described():
    """The documentation shows the kind, the limits and the words."""
    assert parsers.integer(at_least=1, at_most=9).describe() == "whole number, 1 to 9"
    assert parsers.milliseconds().describe() == "milliseconds, at least 0"
    assert parsers.decimal(at_most=1.5).describe() == "number, at most 1.5"
    assert parsers.member(Size, not_yet=(Size.HUGE,)).describe() == "one of, small | large"
    assert parsers.text().describe() == "text"


def test_a_plugin_of_another_package(tmp_path, monkeypatch):
    """A name that an installed package registers is taken as it is."""
    info = tmp_path / "third-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[headrace.converters]\nJsonb = third:Jsonb\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert parsers.plugin("converters", "json")("Jsonb") == "Jsonb"
