"""Files into one flat map."""

import pytest

from headrace.framework.config_files import load, load_file
from headrace.framework.errors import ConfigError
from headrace.framework.properties import Property, parse_properties, write_properties


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


class TestProperties:
    @pytest.mark.parametrize(
        ("line", "key", "value"),
        [
            ("a=b", "a", "b"),
            ("a : b", "a", "b"),
            ("  a\tb c ", "a", "b c "),
            ("a = = b", "a", "= b"),
            ("a==b", "a", "=b"),
            ("a", "a", ""),
            ("=b", "", "b"),
            (r"a\ b\=c\:d = e", "a b=c:d", "e"),
            (r"path = c:\\dir\new", "path", "c:\\dir\new"),
            (r"a = \u00e9\t\ud83d\ude00", "a", "é\t😀"),
            (r"a = \q\"", "a", 'q"'),
            (r"a = b\\", "a", "b\\"),
            (r"\#a = \!b # c", "#a", "!b # c"),
            ("a = b \\\n     c", "a", "b c"),
            ("a = b\\\r\n  # c", "a", "b# c"),
            ("a = b\\", "a", "b"),
            ("a\\\n = b", "a", "b"),
            ("\\\n# c\n a = b", "a", "b"),
        ],
    )
    def test_java_s_rules(self, line, key, value):
        """A property is read as Java reads it: separators, escapes, continued lines."""
        assert [(found.key, found.value) for found in parse_properties(line)] == [(key, value)]

    def test_lines(self):
        """Comments and empty lines are none; each property knows its line; a comment is never continued."""
        text = "# one \\\na=1\n\n  ! two\r\nb=2\\\n\n\rc=3"
        assert parse_properties(text) == [Property("a", "1", 2), Property("b", "2", 5), Property("c", "3", 8)]

    def test_written(self):
        """What is written has escapes where Java needs them."""
        assert write_properties({"a b": " é=\\😀\n"}) == "a\\ b=\\ \\u00E9\\=\\\\\\uD83D\\uDE00\\n\n"

    def test_the_last_one_counts(self, write):
        """Of a key that stands twice in a file, the last value counts, as in Java."""
        assert load_file(write("a.properties", "a=1\na=2")) == {"a": "2"}


class TestJson:
    def test_both_forms(self, write):
        """The bare map, and Connect's form with name and config, give the same map."""
        bare = write("a.json", '{"name": "n", "tasks.max": 4, "errors.log.enable": true, "topic": null, "x": 1.50}')
        form = write(
            "b.json",
            '{"name": "n", "config": {"tasks.max": 4, "errors.log.enable": true, "topic": null, "x": 1.50},'
            ' "tasks": [], "type": "source"}',
        )
        expected = {"name": "n", "tasks.max": "4", "errors.log.enable": "true", "x": "1.50"}
        assert load_file(bare) == expected
        assert load_file(form) == expected

    def test_the_name_inside_wins(self, write):
        """A name in the config goes over the one beside it."""
        assert load_file(write("a.json", '{"name": "a", "config": {"name": "b"}}')) == {"name": "b"}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{\n"a": 1,\n"b"}', r"a\.json, line 3: is not JSON"),
            ("[1]", r"a\.json: must be a JSON object"),
            ('{"a": {"b": 1}}', r"a\.json: the value of 'a' must be a text, not an object"),
            ('{"a": [1]}', r"a\.json: the value of 'a' must be a text, not a list"),
            ('{"a": 1, "a": 2}', r"a\.json: the key 'a' stands twice"),
            ('{"name": "n", "config": {}, "topic": "t"}', r"a\.json: .*'topic': move it inside"),
            ("[" * 100_000, r"a\.json: is nested too deeply"),
        ],
    )
    def test_faults(self, write, text, message):
        """What is no configuration is refused, with the file's name and the line where there is one."""
        with pytest.raises(ConfigError, match=message):
            load_file(write("a.json", text))


class TestToml:
    def test_joined(self, write):
        """Tables are joined by dots, lists by commas; booleans, numbers and times are texts."""
        text = """
            name = "n"
            "transaction.boundary" = "object"
            transforms = []
            [redis]
            streams = ["a", "b-*"]
            [aws.s3]
            bucket.name = "orders"
            fetch.page.size = 100
            path.style = true
            since = 2024-05-01T00:00:00Z
        """
        assert load_file(write("a.toml", text)) == {
            "name": "n",
            "transaction.boundary": "object",
            "transforms": "",
            "redis.streams": "a,b-*",
            "aws.s3.bucket.name": "orders",
            "aws.s3.fetch.page.size": "100",
            "aws.s3.path.style": "true",
            "aws.s3.since": "2024-05-01T00:00:00+00:00",
        }

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a = 1\nb = \n", r"a\.toml, line 2: is not TOML"),
            ("a = 1\nb = [1,\n", r"a\.toml, line \d: is not TOML"),
            ('"a.b" = 1\n[a]\nb = 2', r"a\.toml: the key 'a\.b' is said twice"),
            ("a = [[1]]", r"a\.toml: the value of 'a' must be a list of plain values"),
        ],
    )
    def test_faults(self, write, text, message):
        """What is no configuration is refused, with the file's name and the line where there is one."""
        with pytest.raises(ConfigError, match=message):
            load_file(write("a.toml", text))


class TestSeveral:
    def test_later_ones_win(self, write):
        """Later files go over earlier ones, and assignments over all files."""
        one = write("one.properties", "a=1\nb=1\nc=1\n")
        two = write("two.json", '{"b": 2, "c": 2}')
        assert load([one, two], ["c = x=y", "d="]) == {"a": "1", "b": "2", "c": "x=y", "d": ""}
        assert load([two, one])["b"] == "1"

    def test_references_stay(self, write, monkeypatch):
        """A reference is not resolved when a file is loaded."""
        monkeypatch.setenv("A", "secret")
        assert load([write("a.properties", "a=${env:A}")]) == {"a": "${env:A}"}

    @pytest.mark.parametrize("text", ["aws.secret.access.key:hunter2", "=hunter2"])
    def test_a_bad_assignment(self, text):
        """An assignment without a key or a `=` is refused without being printed."""
        with pytest.raises(ConfigError, match="number 2 of them has no") as caught:
            load([], ["a=b", text])
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.yaml", "a: 1", r"a\.yaml: .*\.json, \.properties or \.toml"),
        ("a", "a=1", r"a: .*\.json, \.properties or \.toml"),
        ("a.properties", b"a=1\nb=\xff", r"a\.properties, line 2: is not UTF-8"),
        ("a.properties", "a=1\nb=\\\n\\u12x4", r"a\.properties, line 2: "),
    ],
)
def test_no_configuration(write, name, content, message):
    """A file of another kind, or of other bytes, is refused by name."""
    with pytest.raises(ConfigError, match=message):
        load_file(write(name, content))


def test_a_missing_file(tmp_path):
    """A file that is not there, or is a folder, is refused by name."""
    with pytest.raises(ConfigError, match=r"gone\.json: cannot be read: No such file"):
        load_file(tmp_path / "gone.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ConfigError, match=r"folder\.json: cannot be read: "):
        load_file(tmp_path / "folder.json")


def test_a_byte_order_mark(write):
    """What an editor puts before the text is no part of the first key."""
    assert load_file(write("a.properties", b"\xef\xbb\xbfa=1")) == {"a": "1"}
    assert load_file(write("a.json", b'\xef\xbb\xbf{"a": "1"}')) == {"a": "1"}
