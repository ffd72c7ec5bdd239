"""Rows of CSV that are told apart without a parser, beside the standard library's."""

import csv
import io
import json

from hypothesis import event, example, given
from hypothesis import strategies as st

from headrace.converters.json_rows import rows_writer
from headrace.converters.json_schema import SchemaWriter
from headrace.framework.schema import Field, Schema
from headrace.framework.table import Table
from headrace.transformers.csv_grid import grid_of

PLAIN = st.text(st.sampled_from("ab1é€ \x7f"), max_size=4)
ODD = st.text(st.sampled_from(",;\t\r\\") | st.characters(codec="utf-8"), max_size=4)
DELIMITERS = st.sampled_from([",", ";", "\t", " ", "a"])


@st.composite
def files(draw):
    """Lines of about as many fields each, with a delimiter; with odd characters in some, and odd ends in others."""
    delimiter = draw(DELIMITERS)
    width = draw(st.integers(1, 3))
    fields = draw(st.sampled_from([PLAIN, PLAIN, PLAIN | ODD]))
    rows = draw(st.lists(st.lists(fields, min_size=width, max_size=width), min_size=1, max_size=4))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\n\n"]))
    text = end.join(delimiter.join(row) for row in rows) + draw(st.sampled_from(["", end]))
    return delimiter, text.replace('"', "")


@st.composite
def quoted_files(draw):
    """Lines as programs write them, with quotes around some fields or all, and now and then a quote too many."""
    delimiter, quote = draw(st.sampled_from([",", ";", "\t"])), draw(st.sampled_from(['"', "'"]))
    width = draw(st.integers(1, 3))
    fields = draw(st.sampled_from([PLAIN, PLAIN | ODD, st.text(st.sampled_from("a'\",;\t\n\r"), max_size=4)]))
    rows = draw(st.lists(st.lists(fields, min_size=width, max_size=width), min_size=1, max_size=4))
    written = io.StringIO()
    how = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    csv.writer(written, delimiter=delimiter, quotechar=quote, quoting=how, lineterminator=end).writerows(rows)
    text = written.getvalue()
    if draw(st.booleans()):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from([quote, quote * 2, f" {quote}", f"{quote} "])) + text[at:]
    return delimiter, quote, text


@given(quoted_files())
@example((",", '"', '""\n'))
@example((",", '"', '"a""b","c"\n'))
@example((",", '"', '"""","",1\n2,"3, 4",""\n'))
@example((",", '"', '"a"b\n'))
@example((",", '"', 'a"b"\n'))
@example((",", '"', '"a\nb"\n'))
@example((",", '"', '"a\n'))
@example((",", '"', '"a\r\nb",c\r\n'))
@example((",", "'", "'\"',1\n"))
def test_quoted_rows_are_those_of_a_parser(given_file):
    """The same where there are quotes; and the JSON of these rows is that of their texts."""
    delimiter, quote, text = given_file
    found = grid_of(text.encode(), delimiter, quote)

    event("told apart" if found is not None else "left to a parser")
    if found is not None:
        reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, quotechar=quote, strict=True)
        assert list(found) == list(reader)
        assert list(found[1:]) == list(found)[1:]
        assert_json_of_the_same(found)


@given(files())
@example((",", ""))
@example((",", "\n"))
@example((",", "\na\n"))
@example((",", "a\n\n"))
@example((",", "a\n\nb\n"))
@example((",", "\na,b\n"))
@example((",", "a,b\nc\nd,e,f\n"))
@example((",", "a,b,c\nd\n"))
@example((",", "a\r\r\n"))
@example(("\t", "a\tb\r\n\t\r\n"))
@example((",", ",\n,\n"))
def test_rows_are_those_of_a_parser(given_file):
    """Where rows are told apart without a parser, they are the rows that the standard library finds."""
    delimiter, text = given_file
    found = grid_of(text.encode(), delimiter, "")

    event("told apart" if found is not None else "left to a parser")
    if found is not None:
        lines = text.removesuffix("\n").split("\n")
        assert list(found) == list(csv.reader(lines, delimiter=delimiter, strict=True))
        assert list(found[1:]) == list(found)[1:]


@given(files())
def test_its_json_is_that_of_its_texts(given_file):
    """What is never made a text by us has the JSON that the text has."""
    delimiter, text = given_file
    found = grid_of(text.encode(), delimiter, "")
    if found is not None:
        assert_json_of_the_same(found)


def assert_json_of_the_same(found):
    """What is written from columns is what is written from each row's texts."""
    names = tuple(f"c{number}" for number in range(len(found.columns)))
    schema = Schema("struct", fields=tuple(Field(name, Schema("string")) for name in names))
    writer = SchemaWriter()

    written = rows_writer(schema, writer).texts(Table(names, found.columns, len(found)))

    assert written == [writer.value(schema, dict(zip(names, row, strict=True))).encode() for row in found]
    assert [[*json.loads(value).values()] for value in written] == list(found)


def test_usual_files_need_no_parser():
    """Rows of as many fields each, with neither quotes nor controls, are told apart, whatever their ends are."""
    for text in ("a,b\n1,2\n", "a,b\r\n1,2\r\n", "a,b\n1,2", "é,€\n,\n", "a\n1\n"):
        assert grid_of(text.encode(), ",", '"') is not None, text


def test_usual_quotes_need_no_parser():
    """Quotes around fields call for no parser: around all, around texts, or where something odd is in them."""
    for text in ('"a","b"\n"1","2"\n', 'a,"b, c"\n1,2\n', 'a,"he said ""no"""\r\n1,""\r\n', '"é","a\\b"\n"",""'):
        assert grid_of(text.encode(), ",", '"') is not None, text
