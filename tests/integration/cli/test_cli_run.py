"""`headrace run`: its document, its exit codes, and what it leaves behind when something is wrong."""

import contextlib
import json
import os
import pty
import signal
import subprocess

import pytest

from headrace.testing.faulty_s3 import Answer, FaultyS3, listings, object_gets

DOCUMENT = {
    "connector": str,
    "state": str,
    "records": int,
    "bytes": int,
    "objects": int,
    "skipped": int,
    "dead_lettered": int,
    "transactions": int,
    "duration_s": float,
    "records_per_s": float,
    "delivery": str,
    "warnings": list,
    "tasks": list,
}


def lines(count, first=1):
    return [b'{"n":%d}' % number for number in range(first, first + count)]


def body(wanted):
    return b"".join(line + b"\n" for line in wanted)


def bounded(connector, *more):
    return "run", connector.file, "--engine", "local", "--available-now", *more


def has_the_contracts_form(document):
    """The keys and types that people's scripts rely on."""
    assert {name: type(document[name]) for name in DOCUMENT} == DOCUMENT
    assert document["error"] is None or isinstance(document["error"], str)
    assert document["state"] in {"COMPLETED", "FAILED"}
    assert all(isinstance(task["task"], int) and isinstance(task["records"], int) for task in document["tasks"])


class TestDone:
    def test_the_document(self, as_json, connector):
        """A bounded run reads everything once, exits with 0 and prints the contract's document."""
        connector.put("a.jsonl", body(lines(100)))
        connector.put("b.jsonl", body(lines(50, first=101)))

        code, document = as_json(*bounded(connector))

        assert code == 0
        has_the_contracts_form(document)
        assert (document["connector"], document["state"], document["error"]) == (connector.name, "COMPLETED", None)
        assert (document["records"], document["objects"], document["delivery"]) == (150, 2, "exactly_once")
        assert document["bytes"] == sum(map(len, lines(150)))
        assert sum(task["records"] for task in document["tasks"]) == 150
        assert {task["task"] for task in document["tasks"]} == {0, 1}
        assert sorted(connector.values()) == sorted(lines(150))
        assert all(offset["complete"] for offset in connector.offsets().values())

    def test_a_second_run_has_nothing_to_do(self, as_json, connector):
        """What is finished is not read again: the second document counts nothing, and exit code 0."""
        connector.put("a.jsonl", body(lines(10)))
        as_json(*bounded(connector))
        code, document = as_json(*bounded(connector))
        assert (code, document["records"], document["state"]) == (0, 0, "COMPLETED")
        assert connector.values() == lines(10)

    def test_offsets_can_be_listed_and_reset_after_it(self, as_json, connector):
        """A bounded run leaves a stopped connector: its offsets can be reset, and everything is read again."""
        connector.put("a.jsonl", body(lines(10)))
        as_json(*bounded(connector))

        _, listed = as_json("offsets", "list", connector.file)
        code, _ = as_json("offsets", "reset", connector.file)
        _, again = as_json(*bounded(connector))

        assert [one["offset"]["recordCount"] for one in listed["offsets"]] == [10]
        assert (code, again["records"]) == (0, 10)

    def test_people_get_a_sentence(self, headrace, connector):
        """Without --output json one line sums up, and in a pipe no progress line is drawn."""
        connector.put("a.jsonl", body(lines(10)))
        done = headrace(*bounded(connector))
        assert done.returncode == 0
        assert done.stdout.startswith(f"{connector.name}: 10 records of 1 objects in ")
        assert done.stderr == ""


def test_a_terminal_shows_progress(program, connector):
    """On a terminal a line shows objects, records, bytes and rate while the run goes on, and goes when it ends."""
    connector.put("a.jsonl", body(lines(10)))
    terminal, its_end = pty.openpty()
    seen = bytearray()
    environment = {**program["env"], "TERM": "xterm", "COLUMNS": "160"}
    with subprocess.Popen(
        [*program["argv"], *bounded(connector)], env=environment, stdout=subprocess.PIPE, stderr=its_end
    ) as running:
        os.close(its_end)
        # A terminal whose last user has gone answers with an error on Linux, and with nothing elsewhere.
        with contextlib.suppress(OSError):
            while shown := os.read(terminal, 4096):
                seen += shown
        out = running.stdout.read()
    os.close(terminal)

    assert running.returncode == 0
    assert out.startswith(f"{connector.name}: 10 records of 1 objects".encode())
    assert b"1/1 objects, 10 records, 0.0 MB" in seen


class TestStopped:
    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
    def test_by_a_signal(self, program, connector, number, code):
        """A continuous run that gets a signal commits, says what it did, writes that it has stopped, and exits."""
        connector.put("a.jsonl", body(lines(10)))
        arguments = ["run", connector.file, "--engine", "local", "--output", "json"]
        with subprocess.Popen(
            [*program["argv"], *arguments], env=program["env"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as running:
            try:
                connector.await_records(10)
                running.send_signal(number)
                out, said = running.communicate(timeout=60)
            finally:
                running.kill()

        assert running.returncode == code, said
        document = json.loads(out)
        has_the_contracts_form(document)
        assert (document["state"], document["records"]) == ("COMPLETED", 10)
        assert connector.view().generation.stopped

    def test_by_a_newer_run(self, program, as_json, connector):
        """Of two runs the older ends with exit code 1 and says that it was taken over."""
        connector.put("a.jsonl", body(lines(10)))
        arguments = ["run", connector.file, "--engine", "local", "--output", "json"]
        with subprocess.Popen(
            [*program["argv"], *arguments], env=program["env"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as older:
            try:
                connector.await_records(10)
                code, newer = as_json(*bounded(connector))
                out, _ = older.communicate(timeout=60)
            finally:
                older.kill()

        assert (code, newer["state"]) == (0, "COMPLETED")
        document = json.loads(out)
        has_the_contracts_form(document)
        assert (older.returncode, document["state"]) == (1, "FAILED")
        assert "taken over" in document["error"]
        assert connector.values() == lines(10)


class TestFailed:
    def test_a_bad_record(self, as_json, connector):
        """Everything before a bad line 31337 is delivered once, the offset is the one before it, the error names it."""
        good = lines(31_336)
        connector.put("big.jsonl", body([*good, b"{oops", *lines(100, first=31_338)]))

        code, document = as_json(*bounded(connector, "--set", "tasks.max=1", "--set", "max.poll.records=1000"))

        assert code == 1
        has_the_contracts_form(document)
        assert (document["state"], document["records"]) == ("FAILED", 31_336)
        place = (
            f"transform, {connector.name}, task 0, s3://{connector.props['aws.s3.bucket.name']}/big.jsonl, line 31337:"
        )
        assert document["error"].startswith(place)
        assert sorted(connector.values()) == sorted(good)
        stored = connector.offsets()["big.jsonl"]
        assert (stored["recordCount"], stored["line"], stored["byteOffset"]) == (31_336, 31_336, len(body(good)))
        assert not stored.get("complete")

    def test_a_bad_record_again(self, as_json, connector):
        """A second run comes to the same line by the same number, and delivers nothing twice."""
        good = lines(10)
        connector.put("big.jsonl", body([*good, b"{oops"]))
        as_json(*bounded(connector))

        code, document = as_json(*bounded(connector))

        assert (code, document["records"]) == (1, 0)
        assert "big.jsonl, line 11:" in document["error"]
        assert connector.values() == good

    def test_after_a_bad_record_is_mended_by_the_configuration(self, as_json, connector):
        """With a format that takes the line, a run goes on at line 31337, and what came before it is not sent again."""
        good, rest = lines(31_336), [b"{oops", *lines(100, first=31_338)]
        connector.put("big.jsonl", body([*good, *rest]))
        as_json(*bounded(connector))

        code, document = as_json(*bounded(connector, "--set", "input.format=text"))

        assert (code, document["error"], document["records"]) == (0, None, len(rest))
        assert sorted(connector.values()) == sorted([*good, *rest])
        stored = connector.offsets()["big.jsonl"]
        assert (stored["recordCount"], stored["complete"]) == (31_437, True)

    def test_after_a_bad_record_is_mended_in_the_object(self, as_json, connector):
        """A mended object is another version: by default it is read from its first record, and with fail it is not."""
        good = lines(10)
        connector.put("big.jsonl", body([*good, b"{oops"]))
        as_json(*bounded(connector))
        connector.put("big.jsonl", body([*good, *lines(2, first=11)]))

        refused, said = as_json(*bounded(connector, "--set", "s3.overwrite.policy=fail"))
        code, document = as_json(*bounded(connector))

        assert refused == 1
        assert "big.jsonl" in said["error"]
        assert (code, document["records"]) == (0, 12)
        assert sorted(connector.values()) == sorted([*good, *good, *lines(2, first=11)])

    def test_a_bucket_that_is_missing(self, as_json, connector):
        """A missing bucket is named, with the stage; exit code 1, and nothing is stored."""
        code, document = as_json(*bounded(connector, "--set", "aws.s3.bucket.name=no-such-bucket"))
        assert code == 1
        has_the_contracts_form(document)
        assert document["error"].startswith(f"discover, {connector.name}, s3://no-such-bucket/")
        assert connector.offsets() == {}

    @pytest.mark.parametrize(("meant", "stage"), [(listings, "discover"), (object_gets, "read")])
    def test_denied(self, as_json, connector, s3_endpoint, meant, stage):
        """Access that is denied is said to be, with the stage and the place; exit code 1, and nothing is sent."""
        connector.put("a.jsonl", body(lines(10)))
        with FaultyS3(s3_endpoint) as faulty:
            faulty.script(Answer(403, "AccessDenied", on=meant))
            code, document = as_json(*bounded(connector, "--set", f"aws.s3.endpoint={faulty.endpoint}"))

        assert code == 1
        has_the_contracts_form(document)
        assert document["error"].startswith(f"{stage}, {connector.name}, ")
        assert connector.props["aws.s3.bucket.name"] in document["error"]
        assert "access is denied" in document["error"]
        assert (connector.values(), connector.offsets()) == ([], {})

    @pytest.mark.parametrize(
        ("code", "advice"),
        [("InvalidAccessKeyId", "check aws.access.key.id"), ("SignatureDoesNotMatch", "check aws.secret.access.key")],
    )
    def test_a_key_pair_that_is_refused(self, as_json, connector, s3_endpoint, code, advice):
        """Credentials that the server does not take are said to be wrong, with the key to look at; exit code 1."""
        connector.put("a.jsonl", body(lines(10)))
        with FaultyS3(s3_endpoint) as faulty:
            faulty.script(Answer(403, code, on=listings))
            ended, document = as_json(*bounded(connector, "--set", f"aws.s3.endpoint={faulty.endpoint}"))

        assert (ended, document["state"]) == (1, "FAILED")
        assert document["error"].startswith(f"discover, {connector.name}, s3://{connector.props['aws.s3.bucket.name']}")
        assert advice in document["error"]
        assert (connector.values(), connector.offsets()) == ([], {})

    @pytest.mark.slow  # it is given most of a minute to come
    def test_a_store_that_is_not_there(self, as_json, connector):
        """An S3 server that cannot be reached ends the run, with the stage and the endpoint; nothing is stored."""
        connector.put("a.jsonl", body(lines(10)))
        code, document = as_json(*bounded(connector, "--set", "aws.s3.endpoint=http://127.0.0.1:1"))
        assert code == 1
        has_the_contracts_form(document)
        assert document["error"].startswith(f"discover, {connector.name}, s3://{connector.props['aws.s3.bucket.name']}")
        assert "http://127.0.0.1:1" in document["error"]
        assert "check aws.s3.endpoint" in document["error"]
        assert (connector.values(), connector.offsets()) == ([], {})

    def test_a_broker_that_is_not_there(self, as_json, connector):
        """A run that fails before it could claim its connector prints the same document with zeros; exit code 1."""
        code, document = as_json(*bounded(connector, "--set", "bootstrap.servers=127.0.0.1:1"))
        assert code == 1
        has_the_contracts_form(document)
        assert (document["state"], document["records"], document["tasks"]) == ("FAILED", 0, [])
        assert "127.0.0.1:1" in document["error"]

    @pytest.mark.parametrize("arguments", [["--set", "task.max=3"], ["--set", "input.format=jsonnl"]])
    def test_a_wrong_configuration(self, as_json, connector, arguments):
        """What is wrong without asking anybody is exit code 2 and the document of faults, and nothing is claimed."""
        code, document = as_json(*bounded(connector, *arguments))
        assert (code, document["state"]) == (2, "INVALID")
        assert document["errors"][0]["suggestion"] in {"tasks.max", "jsonl"}

    def test_people_get_one_line(self, headrace, connector):
        """Without --output json the error is one line on standard error, and there is no traceback."""
        connector.put("bad.jsonl", b"{oops\n")
        done = headrace(*bounded(connector))
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("headrace: transform, ")
        assert "line 1:" in done.stderr
        assert "Traceback" not in done.stderr
