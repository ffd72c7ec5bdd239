"""What is stored of a file, and what that means for the file that is there."""

import attrs
import pytest

from headrace.sources.files.entry import Action, Decision, FileOffsetEntry, OverwritePolicy, file_key, what_to_do
from headrace.sources.files.family import Families, family_of
from headrace.sources.files.fingerprint import MARK_BYTES, fingerprint
from headrace.sources.files.objects import FoundFile
from headrace.sources.files.splits import FileSplit, FileSplitSerializer
from headrace.transformers.base import Position


@attrs.frozen
class Bytes:
    """Content in memory."""

    data: bytes

    def head(self, size):
        return fingerprint(self.data[:size])

    def before(self, position):
        return fingerprint(self.data[max(0, position - MARK_BYTES) : position])


CONTENT = Bytes(b"0123456789" * 10)
FOUND = FoundFile(path="/f", size=100, last_modified=1_700_000_000_000, inode=7)
THERE = Position(records=5, byte=70, line=6)


def entry_at(position, *, complete=False, content=CONTENT, found=FOUND):
    entry = FileOffsetEntry(file_key("/f"), {}).of_version(found, content)
    return entry.from_properties(
        entry.properties_at(position, tail=content.before(position.byte) if position.byte else None, complete=complete)
    )


HALF = entry_at(THERE)
DONE = entry_at(Position(records=9, byte=100, line=9), complete=True)
TOUCHED = attrs.evolve(FOUND, last_modified=1_800_000_000_000)
GROWN = attrs.evolve(TOUCHED, size=150)
LONGER = Bytes(CONTENT.data + b"x" * 50)


def decided(entry, found, content, *, grows=True):
    return {policy: what_to_do(entry, found, content, policy, grows=grows) for policy in OverwritePolicy}


@pytest.mark.parametrize(
    ("entry", "found", "content", "grows", "expected"),
    [
        pytest.param(None, FOUND, None, True, Decision(Action.READ), id="nothing is stored"),
        pytest.param(HALF, FOUND, None, True, Decision(Action.READ, THERE), id="half-way"),
        pytest.param(HALF, TOUCHED, CONTENT, False, Decision(Action.READ, THERE), id="half-way, touched"),
        pytest.param(HALF, GROWN, LONGER, False, Decision(Action.READ, THERE), id="half-way, grown"),
        pytest.param(DONE, FOUND, None, True, Decision(Action.FINISHED), id="finished"),
        pytest.param(DONE, TOUCHED, CONTENT, True, Decision(Action.FINISHED), id="finished, touched"),
        pytest.param(DONE, attrs.evolve(TOUCHED, inode=9), CONTENT, True, Decision(Action.FINISHED), id="put back"),
        pytest.param(DONE, GROWN, LONGER, True, Decision(Action.READ, DONE.position()), id="finished, lines added"),
        pytest.param(
            FileOffsetEntry(file_key("/f"), {"position": 40}),
            FOUND,
            CONTENT,
            True,
            Decision(Action.READ, Position(byte=40)),
            id="from Kafka Connect",
        ),
        pytest.param(
            entry_at(Position(), complete=True, content=Bytes(b""), found=attrs.evolve(FOUND, size=0)),
            FOUND,
            CONTENT,
            False,
            Decision(Action.READ),
            id="it was empty",
        ),
    ],
)
def test_what_to_do_when_no_policy_is_asked(entry, found, content, grows, expected):
    """Where nothing that was read has been overwritten, the entry and the file alone decide, under every policy."""
    assert set(decided(entry, found, content, grows=grows).values()) == {expected}


@pytest.mark.parametrize(
    ("entry", "found", "content", "grows"),
    [
        pytest.param(DONE, GROWN, LONGER, False, id="finished, grown, no format of lines"),
        pytest.param(DONE, TOUCHED, Bytes(b"x" + CONTENT.data[1:]), True, id="another beginning"),
        pytest.param(DONE, TOUCHED, Bytes(CONTENT.data[:99] + b"x"), True, id="another end"),
        pytest.param(HALF, attrs.evolve(TOUCHED, size=60), Bytes(CONTENT.data[:60]), True, id="cut before the place"),
        pytest.param(DONE, attrs.evolve(TOUCHED, etag=""), None, True, id="nothing to look into"),
        pytest.param(
            FileOffsetEntry(file_key("/f"), {"position": 400}), FOUND, CONTENT, True, id="Kafka Connect's, too short"
        ),
    ],
)
def test_the_policy_decides_about_an_overwritten_file(entry, found, content, grows):
    """A file that no longer has what was read of it is read again, left out, or fails."""
    actions = {policy: decision.action for policy, decision in decided(entry, found, content, grows=grows).items()}
    assert actions == {
        OverwritePolicy.REREAD: Action.REREAD,
        OverwritePolicy.IGNORE: Action.IGNORE,
        OverwritePolicy.FAIL: Action.FAIL,
    }


def test_a_version_that_has_a_name_is_known_by_that():
    """Where a file system names versions (an ETag), the name alone decides, whatever the time says."""
    found = FoundFile(path="s3://b/k", size=100, last_modified=1, etag="e1")
    entry = FileOffsetEntry(file_key(found.path), {}).of_version(found, None)
    assert entry.is_version(attrs.evolve(found, last_modified=2))
    assert not entry.is_version(attrs.evolve(found, etag="e2"))


def test_what_is_stored():
    """The place is stored as Kafka Connect's file source does, and what others have added survives."""
    entry = FileOffsetEntry(file_key("/f"), {"position": 1, "complete": True, "owner": "somebody"})
    assert entry.properties_at(THERE) == {"position": 70, "recordCount": 5, "line": 6, "owner": "somebody"}
    assert entry.get_manager_key().mapping == {"filename": "/f"}


def test_version_1_of_a_split_is_read_for_ever():
    """What version 1 wrote is read, byte for byte as it was written; a version from the future is refused."""
    written = (
        b'{"path":"/logs/app.log","size":7,"lastModified":1700000000000,"inode":12,"etag":"","end":5,'
        b'"family":["/logs/app.log.1"]}'
    )
    found = FoundFile(path="/logs/app.log", size=7, last_modified=1_700_000_000_000, inode=12)
    split = FileSplit(found, end=5, family=("/logs/app.log.1",))
    serializer = FileSplitSerializer()
    assert serializer.deserialize(1, written) == split
    with pytest.raises(ValueError, match="newer"):
        serializer.deserialize(serializer.version + 1, written)
    assert split.source_partitions == [{"filename": "/logs/app.log"}, {"filename": "/logs/app.log.1"}]


@pytest.mark.parametrize(
    "name", ["app.log", "app.log.1", "app-2024-01-31.log", "app_2.log", "app.log-20240131", "app.2024.log.gz", "app2.x"]
)
def test_rotated_names_are_of_one_family(name):
    """Numbers and dates in a name, and all that stands behind a dot, make no other family; the folder does."""
    assert family_of(f"/logs/{name}") == "/logs/app"
    assert family_of(f"/other/{name}") != "/logs/app"


def test_a_family_is_every_name_that_was_seen():
    """Names that have gone stay known, one that cannot be stored is passed over, and nobody is of his own others."""
    families = Families()
    families.learn(["/l/a.log", "/l/a.log.1", "/l/b.log", "/l/a.\udcff"])
    families.learn(["/l/a.log"])
    assert families.others("/l/a.log") == ("/l/a.log.1",)
