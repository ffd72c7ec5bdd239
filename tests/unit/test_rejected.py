"""What is no record, passed over by each format, and what around it comes out all the same."""

import io
import tracemalloc
from itertools import repeat

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework import registry
from headrace.framework.errors import DataError
from headrace.framework.parts import Extent
from headrace.testing.streams import ScriptedStream, SeekableBytes, drained
from headrace.transformers.base import Position
from headrace.transformers.tolerating import tolerated

SYNC = b"0123456789abcdef"
AVRO = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}


def transformer(form, **options):
    made = registry.find("transformers", form)()
    made.configure({"errors.tolerance": "all", **{key.replace("__", "."): text for key, text in options.items()}})
    return made


def read(form, data, start=None, **options):
    """The values, and the pieces that are none, each as (number, start, end, count, raw)."""
    values, pieces, end = [], [], start or Position()
    content = SeekableBytes(data) if isinstance(data, bytes) else data
    made = transformer(form, **options)
    for batch in tolerated(lambda: made.batches(content, end), end, tolerant=True):
        values += batch.values
        if batch.rejected is not None:
            one = batch.rejected
            pieces.append((one.number, one.start, one.end, one.count, one.raw))
    return values, pieces


class TestLines:
    def test_a_bad_line_is_one_piece(self):
        """Lines before and behind a bad one are values; the piece has its number, bytes and range, with its end."""
        values, pieces = read("jsonl", b'{"a":1}\nbad\n\n{"a":2}\r\n{')
        assert values == [b'{"a":1}', b'{"a":2}']
        assert pieces == [(2, 8, 12, 1, b"bad"), (5, 22, 23, 1, b"{")]

    def test_every_line_may_be_bad(self):
        """Thousands of bad lines in a row are as many pieces, in a time that grows with their number only."""
        values, pieces = read("jsonl", b"no\n" * 20_000)
        assert (values, len(pieces), pieces[-1]) == ([], 20_000, (20_000, 59_997, 60_000, 1, b"no"))

    def test_invalid_utf_8_is_a_piece(self):
        """A line of text that is not UTF-8 is passed over as it is."""
        assert read("text", b"one\n\xff\xfe\ntwo") == (["one", "two"], [(2, 4, 7, 1, b"\xff\xfe")])

    def test_a_mark_and_carriage_returns_are_no_trouble(self):
        """With a byte order mark and Windows' line ends, places are those of the object."""
        values, pieces = read("jsonl", b"\xef\xbb\xbf1\r\nbad\r\n2\r\n")
        assert (values, pieces) == ([b"1", b"2"], [(2, 6, 11, 1, b"bad\r")])

    def test_a_line_that_is_too_long_is_never_held(self):
        """A line of half a gigabyte is a piece without bytes; memory does not grow with it."""
        size = 500 * 1024 * 1024

        class Stream:
            pieces = iter([b"1\n", *repeat(b"x" * 262_144, size // 262_144), b"\n2\n"])

            def read(self, _):
                return next(self.pieces, b"")

        tracemalloc.start()
        values, pieces = read("jsonl", Stream(), max__record__bytes="1000")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (values, pieces) == ([b"1", b"2"], [(2, 2, size + 3, 1, None)])
        assert peak < 8 * 1024 * 1024

    def test_what_json_does_not_have_is_bad(self):
        """NaN and too deep a nesting are pieces; an integer of any size is a value, digit for digit."""
        deep = b"[" * 100_000
        values, pieces = read("jsonl", b"\n".join([b'{"a":NaN}', deep, b"123456789012345678901234567890"]))
        assert (values, [piece[0] for piece in pieces]) == ([b"123456789012345678901234567890"], [1, 2])


class TestCsv:
    def test_each_bad_row_is_one_piece(self):
        """Too many fields, a stray quote, invalid UTF-8, an open quote: a piece each, the rows between are values."""
        values, pieces = read("csv", b'a,b\n1,2\n1,2,3\n"x"y,3\n3,4\n\xff,5\n5,6\n"open,7\n7,8\n')
        assert [row["a"] for row in values] == ["1", "3", "5", "7"]
        assert pieces == [
            (3, 8, 14, 1, b"1,2,3"),
            (4, 14, 21, 1, b'"x"y,3'),
            (6, 25, 29, 1, b"\xff,5"),
            (8, 33, 41, 1, b'"open,7'),
        ]

    def test_a_long_row_is_passed_over_whole(self):
        """A row over the limit is a piece without bytes, whether it is one line or several in quotes."""
        data = b"a,b\n1,2\n" + b"x" * 60 + b',2\n\n"' + b"y" * 20 + b"\n" + b"z" * 20 + b'",3\n3,4\n'
        values, pieces = read("csv", data, max__record__bytes="30")
        assert [row["a"] for row in values] == ["1", "3"]
        assert [(piece[0], piece[4]) for piece in pieces] == [(3, None), (5, None)]

    @pytest.mark.parametrize("size", [2000, 200_000, 1_100_000])
    def test_a_long_row_is_the_same_however_it_is_read(self, size):
        """A row in quotes that is too long is one piece; one that is so by a megabyte is told by its first line."""
        data = b'a,b\n1,2\n"' + (b"y" * 999 + b"\n") * (size // 1000) + b'",3\n3,4\n'
        found = []
        for most in (200, 6000, 600_000):
            pieces = ScriptedStream([data[at : at + most] for at in range(0, len(data), most)])
            found.append(read("csv", pieces, max__record__bytes="30"))
        assert found[1:] == found[:-1]
        values, pieces = found[0]
        assert (values[0]["a"], values[-1]["a"], len(pieces)) == ("1", "3", 1 if size < 1_000_000 else 1101)

    def test_a_field_that_has_not_its_type_is_a_bad_row(self):
        """With types declared, an integer beyond 64 bits makes its row a piece."""
        values, pieces = read("csv", b"n\n1\n9223372036854775808\n2\n", csv__types="n:int64")
        assert (values, [piece[4] for piece in pieces]) == ([{"n": 1}, {"n": 2}], [b"9223372036854775808"])

    def test_without_a_header_nothing_means_anything(self):
        """A header that cannot be read makes the whole object one piece."""
        assert read("csv", b"a,\xff\n1,2\n") == ([], [(1, 0, None, None, None)])

    @pytest.mark.parametrize("columns", [{}, {"csv__columns": "c1,c2"}])
    def test_where_there_is_no_header_the_first_row_is_one_of_many(self, columns):
        """Without a header a first row that cannot be told apart is one piece, and the rows behind it are values."""
        options = {"csv__header": "false", "csv__quoted__newlines": "false", **columns}
        data = b'"x"y,1\n1,2\n3,4\n'
        values, pieces = read("csv", data, **options)
        assert ([row["c1"] for row in values], pieces) == (["1", "3"], [(1, 0, 7, 1, b'"x"y,1')])
        made = transformer("csv", **options)
        (batch,) = made.batches(SeekableBytes(data), Position(records=1, byte=7, line=1))
        assert [row["c1"] for row in batch.values] == ["1", "3"]
        (batch,) = made.part(SeekableBytes(data), Extent(8, len(data)), Position())
        assert [row["c1"] for row in batch.values] == ["3"]

    def test_a_bad_row_begins_behind_the_blank_lines(self):
        """The place of a bad row, by number and bytes, is that of the row and not of the blank lines before it."""
        _, pieces = read("csv", b"a,b\n1,2\n\n\r\n1,2,3\n4,5\n")
        assert pieces == [(5, 11, 17, 1, b"1,2,3")]

    def test_a_row_is_too_long_whatever_follows_it(self):
        """A long row is a piece also where the next one is bad; blank lines before a row do not make it long."""
        data = b"a,b\n" + b"x" * 60 + b',2\n"x"y,3\n3,4\n' + b"\n" * 60 + b"5,6\n"
        values, pieces = read("csv", data, max__record__bytes="30")
        assert [row["a"] for row in values] == ["3", "5"]
        assert [piece[:2] for piece in pieces] == [(2, 4), (3, 67)]
        strict = transformer("csv", max__record__bytes="30", errors__tolerance="none")
        values, error = drained(strict.batches(SeekableBytes(data), Position()))
        assert (values, error.where.position, "max.record.bytes" in error.message) == ([], "line 2", True)

    def test_every_row_may_be_bad(self):
        """Thousands of rows that cannot be told apart are as many pieces, in a time that grows with their number."""
        values, pieces = read("csv", b"a\n" + b'"x"y\n' * 3_000)
        assert (values, len(pieces)) == ([], 3_000)


class TestJson:
    def test_an_element_whose_end_is_seen_is_a_piece(self):
        """Bad objects, arrays and words between commas are pieces, and what is around them are values."""
        values, pieces = read("json", b'[{"a":1}, {bad}, NaN, [1,2,], 5, {"a":nan}, "x"]')
        assert values == [b'{"a":1}', b"5", b'"x"']
        assert [piece[4] for piece in pieces] == [b"{bad}", b"NaN", b"[1,2,]", b'{"a":nan}']

    def test_what_has_no_end_takes_the_rest_with_it(self):
        """Where an element's end cannot be seen, what is left of the document is one piece."""
        assert read("json", b'[1, {"a" 3, 4]') == ([b"1"], [(2, 2, None, None, None)])

    def test_a_document_is_one_piece(self):
        """A document that is none, or is nested too deep, is one piece."""
        assert read("json", b'{"a":NaN}') == ([], [(1, 0, 9, 1, b'{"a":NaN}')])
        assert read("json", b"[" * 3000 + b"]" * 3000)[1] == [(1, 0, None, None, None)]


def avro_blocks(codec="null"):
    """A header, and four blocks of three records each, the mark taken off."""
    target = io.BytesIO()
    for at in range(0, 12, 3):
        rows = [{"n": number, "s": "x" * 20} for number in range(at, at + 3)]
        fastavro.writer(target, AVRO, rows, sync_marker=SYNC, codec=codec)
    return target.getvalue().split(SYNC)[:-1]


def joined(blocks):
    return b"".join(block + SYNC for block in blocks)


class TestAvro:
    def test_a_bad_record_takes_the_rest_of_its_block_with_it(self):
        """Nobody knows where it ends, so the piece is the rest of its block; the next block comes out."""
        blocks = avro_blocks()
        at = blocks[2].find(b"x" * 20, 24)
        blocks[2] = blocks[2][: at - 1] + b"\x01" + blocks[2][at:]
        values, pieces = read("avro", joined(blocks))
        assert [row["n"] for row in values] == [0, 1, 2, 3, 6, 7, 8, 9, 10, 11]
        [(number, start, end, count, _)] = pieces
        assert (number, count) == (5, 2)
        assert (start, end) == (len(joined(blocks[:2])), len(joined(blocks[:3])))

    @pytest.mark.parametrize("first", [0, 1, 2])
    def test_an_integer_beyond_64_bits_takes_the_rest_of_its_block_with_it(self, first):
        """A record with an integer that 64 bits cannot hold is as any other that cannot be decoded."""
        blocks = avro_blocks()
        bodies = [bytes([at * 2]) + b"\x28" + b"x" * 20 for at in range(3, 6)]
        bodies[first] = b"\x80" * 9 + b"\x02" + bodies[first][1:]
        body = b"".join(bodies)
        blocks[2] = b"\x06" + bytes([len(body) * 2 & 0x7F | 0x80, len(body) >> 6]) + body
        values, pieces = read("avro", joined(blocks))
        assert [row["n"] for row in values] == [0, 1, 2, *range(3, 3 + first), *range(6, 12)]
        place = (len(joined(blocks[:2])), len(joined(blocks[:3])))
        assert [piece[:4] for piece in pieces] == [(4 + first, *place, 3 - first)]

    @pytest.mark.parametrize("damage", [b"\x06\x7f", b"\x06\xff\xff\xff\xff\x0f", b"\xff" * 20])
    def test_behind_a_broken_block_the_next_mark_is_found(self, damage):
        """A block whose size is damaged is a piece from its first byte to behind the next mark."""
        blocks = avro_blocks()
        blocks[2] = damage + blocks[2][len(damage) :]
        values, pieces = read("avro", joined(blocks))
        assert [row["n"] for row in values] == [0, 1, 2, 6, 7, 8, 9, 10, 11]
        assert [piece[:4] for piece in pieces] == [(4, len(joined(blocks[:2])), len(joined(blocks[:3])), None)]

    def test_a_lost_mark_costs_both_its_neighbours(self):
        """Where the mark between two blocks is damaged, both are in the piece, and the one behind them comes out."""
        blocks = avro_blocks()
        data = joined(blocks[:2]) + blocks[2] + b"?" * 16 + joined(blocks[3:])
        values, pieces = read("avro", data)
        assert [row["n"] for row in values] == [0, 1, 2, 9, 10, 11]
        assert [piece[3] for piece in pieces] == [None]

    def test_packed_data_that_is_damaged_is_its_block(self):
        """A block that cannot be unpacked is a piece of as many records as it says."""
        blocks = avro_blocks("bzip2")
        blocks[2] = blocks[2][:6] + b"????" + blocks[2][10:]
        values, pieces = read("avro", joined(blocks))
        assert ([row["n"] for row in values], pieces[0][3]) == ([0, 1, 2, 6, 7, 8, 9, 10, 11], 3)

    @pytest.mark.parametrize("damaged", [b"PAR1 is something else", b"Obj\x01\x04"])
    def test_what_is_no_container_is_one_piece(self, damaged):
        """The wrong magic and a header that is cut make the whole object one piece."""
        assert read("avro", damaged) == ([], [(1, 0, None, None, None)])


def parquet(table, **options):
    target = io.BytesIO()
    pq.write_table(table, target, use_dictionary=False, compression="none", **options)
    return target.getvalue()


class TestParquet:
    def test_a_row_group_that_cannot_be_read_is_one_piece(self):
        """Its rows are passed over with the range of its bytes; the groups around it come out, the first included."""
        data = parquet(pa.table({"a": list(range(10)), "b": [b"x" * 100] * 10}), row_group_size=4)
        for group, left in ((0, [4, 5, 6, 7, 8, 9]), (1, [0, 1, 2, 3, 8, 9])):
            at = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(group).column(0).data_page_offset
            values, pieces = read("parquet", data[:at] + b"\xff" * 20 + data[at + 20 :])
            assert [row["a"] for row in values] == left
            assert [(piece[0], piece[1], piece[3]) for piece in pieces] == [(4 * group + 1, at, 4)]

    def test_a_row_that_is_too_large_is_one_piece(self):
        """Only that row is passed over."""
        values, pieces = read("parquet", parquet(pa.table({"a": ["p", "q" * 900, "r"]})), max__record__bytes="200")
        assert ([row["a"] for row in values], [piece[0] for piece in pieces]) == (["p", "r"], [2])

    def test_a_file_without_its_end_is_one_piece(self):
        """Without the footer nothing is known of it."""
        assert read("parquet", parquet(pa.table({"a": [1]}))[:-9]) == ([], [(1, 0, None, None, None)])


class TestAgain:
    @pytest.mark.parametrize(
        ("form", "head", "bad", "mended", "values"),
        [
            ("jsonl", b"", b'{"a":1} {"b":2}\n', b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
            ("text", b"", b"one\xfftwo\n", b"one\ntwo\n", ["one", "two"]),
            ("csv", b"a,b\n", b"1,2,3,4\n", b"1,2\n3,4\n", [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),
        ],
    )
    def test_a_line_that_was_mended_to_two_is_both_of_them(self, form, head, bad, mended, values):
        """In a repaired object of the same size every record between the bytes of the piece is read, and no other."""
        first, last = (head + b"0,0\n", b"9,9\n") if head else (b"0\n", b"9\n")
        made = transformer(form)
        content = SeekableBytes(first + bad + last)
        [piece] = [batch.rejected for batch in made.batches(content, Position()) if batch.rejected is not None]
        repaired = first + mended + last

        again = made.again(lambda: SeekableBytes(repaired), piece, same=False, same_size=True)

        assert len(mended) == len(bad)
        assert [value for batch in again for value in batch.values] == values

    @pytest.mark.parametrize(
        ("repaired", "moved", "values", "fetched"),
        [
            (b'"mad"', 0, [b'"mad"'], 500),
            (b"1, 23", 0, [b"1", b"23"], 500),
            (b'"much"', 1, [b'"much"'], 10_000),
            (b"{BAD}", 0, [], 10_000),
        ],
    )
    def test_an_element_is_read_where_it_was_or_by_its_number(self, repaired, moved, values, fetched):
        """In an array of the same size what stands between the same two commas is read, and little else is fetched.

        Where no element is there any more it is counted from the beginning, and an error says what is wrong with it.
        """
        made = transformer("json")
        others = b", ".join([b'"%s"' % (b"x" * 90)] * 30)
        content = b"[%b, %b, %b]" % (others, b"{bad}", others)
        [piece] = [one.rejected for one in made.batches(SeekableBytes(content), Position()) if one.rejected]
        mended = b"[%b, %b, %b]" % (others.replace(b"x", b"", moved), repaired, others)
        opened = []

        def open_content():
            opened.append(SeekableBytes(mended))
            return opened[-1]

        found, error = drained(made.again(open_content, piece, same=False, same_size=True))

        assert len(mended) == len(content)
        assert found == values
        assert (error is None) if values else ("record 31" in str(error))
        assert sum(stream.fetched for stream in opened) <= fetched

    def test_a_line_that_was_blanked_out_is_missed(self):
        """Where no record is between the bytes of the piece any more, that is said, and the letter stays."""
        made = transformer("jsonl")
        [piece] = [batch.rejected for batch in made.batches(SeekableBytes(b"bad\n1\n"), Position()) if batch.rejected]
        with pytest.raises(DataError, match="1 records are not there any more"):
            list(made.again(lambda: SeekableBytes(b"   \n1\n"), piece, same=False, same_size=True))


class TestOthers:
    def test_a_format_that_only_raises_ends_in_one_piece(self):
        """What somebody else's transformer gives out before its DataError stays, and the rest is one piece."""
        strict = registry.find("transformers", "jsonl")()
        strict.configure({})
        batches = list(
            tolerated(lambda: strict.batches(io.BytesIO(b"1\n2\nbad\n3"), Position()), Position(), tolerant=True)
        )
        assert [list(batch.values) for batch in batches] == [[b"1", b"2"], []]
        assert (batches[1].rejected.start, batches[1].rejected.count) == (4, None)
        with pytest.raises(DataError, match="line 1"):
            list(tolerated(lambda: strict.batches(io.BytesIO(b"bad"), Position()), Position(), tolerant=False))

    def test_an_object_that_is_too_large_for_one_record_is_one_piece(self):
        """With the format bytes, an object over the limit is passed over as a whole."""
        assert read("bytes", b"x" * 100, max__record__bytes="10") == ([], [(1, 0, None, None, None)])
