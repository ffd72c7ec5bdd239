"""Jars are fetched once, by Ivy, from the repository that was named, and only with the bytes that were expected."""

import hashlib
import re
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headrace.framework.errors import DiskFullError, DownloadError
from headrace.testing import free_port
from headrace.testing.jars import Jar, fetch_jars, read_jar_list
from headrace.testing.kafka import JAR_LIST

FULL_DISK = """#!/bin/sh
case $* in
  *-version*) echo "java.specification.version = 17" >&2; echo "java.home = {home}" >&2 ;;
  *) echo "java.io.IOException: No space left on device" >&2; exit 1 ;;
esac
"""


class Repository(SimpleHTTPRequestHandler):
    """A folder over HTTP that keeps count of the jars that were asked for."""

    asked: list[str]

    def do_GET(self):
        self.asked.append(self.path.rpartition("/")[2])
        super().do_GET()

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository of Maven's layout on loopback: its folder, and the list of the files it was asked for."""
    folder = tmp_path / "repository"
    folder.mkdir()
    asked = []
    handler = type("Counting", (Repository,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", f"http://127.0.0.1:{server.server_port}/")
        yield folder, asked
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache of our own, with a space in its name."""
    folder = tmp_path / "a cache"
    monkeypatch.setenv("HEADRACE_CACHE", str(folder))
    return folder


def put_jar(folder, artifact, version="1.0"):
    """A tiny jar in a repository, and how a list would name it."""
    path = folder / "org" / "example" / artifact / version / f"{artifact}-{version}.jar"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", artifact)
    return Jar("org.example", artifact, version, hashlib.sha256(path.read_bytes()).hexdigest())


def left_in(cache):
    """What lies in the cache, locks aside."""
    return {path.name for path in cache.rglob("*") if path.is_file() and path.name != ".lock"}


def test_a_list_is_read(tmp_path):
    """Each line is a jar, by coordinates and sum; empty lines and those for people are passed over."""
    (tmp_path / "list").write_text("# jars\n\norg.example:one:1.0 aa\norg.example:two:2.0 bb\n")
    assert read_jar_list(tmp_path / "list") == [
        Jar("org.example", "one", "1.0", "aa"),
        Jar("org.example", "two", "2.0", "bb"),
    ]


def test_the_brokers_list_is_complete_in_itself():
    """Every jar of the broker has a whole SHA-256 sum, none is there twice, and the broker itself is among them."""
    jars = read_jar_list(JAR_LIST)
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in jars)
    assert len({(jar.group, jar.artifact) for jar in jars}) == len(jars)
    assert "kafka_2.13" in {jar.artifact for jar in jars}


def test_jars_are_fetched_once(repository, cache):
    """What is missing comes from the repository; a second time nothing is asked for."""
    folder, asked = repository
    jars = [put_jar(folder, "one"), put_jar(folder, "two", "2.5")]
    paths = fetch_jars(jars, name="some")
    assert [path.name for path in paths] == ["one-1.0.jar", "two-2.5.jar"]
    assert all(jar.is_intact(path.parent) for jar, path in zip(jars, paths, strict=True))
    assert set(asked) == left_in(cache) == {"one-1.0.jar", "two-2.5.jar"}
    asked.clear()
    assert fetch_jars(jars, name="some") == paths
    assert asked == []


def test_a_newer_list_does_not_bring_the_older_jars(repository):
    """Only the jars of the list are given back, whatever else lies in the cache under that name."""
    folder, _ = repository
    fetch_jars([put_jar(folder, "one")], name="some")
    assert [path.name for path in fetch_jars([put_jar(folder, "one", "2.0")], name="some")] == ["one-2.0.jar"]


def test_those_who_come_at_once_wait_for_one_fetch(repository):
    """Of several that want the same jars at the same time one fetches and the others use what it brought."""
    folder, asked = repository
    jar = put_jar(folder, "one")
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: fetch_jars([jar], name="some"), range(3)))
    assert found[0] == found[1] == found[2]
    assert asked.count("one-1.0.jar") == 1


def test_a_broken_jar_in_the_cache_is_fetched_again(repository, cache):
    """Bytes that changed in the cache are noticed and replaced, and what a killed fetch left behind goes."""
    folder, asked = repository
    jar = put_jar(folder, "one")
    (path,) = fetch_jars([jar], name="some")
    path.write_bytes(path.read_bytes()[:-1])
    (path.parent / ".fetching-killed").mkdir()
    asked.clear()
    fetch_jars([jar], name="some")
    assert jar.is_intact(path.parent)
    assert asked == ["one-1.0.jar"]
    assert list(cache.rglob(".fetching-*")) == []


def test_other_bytes_than_expected_are_refused(repository, cache):
    """A repository that serves something else is refused by name, and nothing of it stays."""
    folder, _ = repository
    good, bad = put_jar(folder, "one"), put_jar(folder, "two")
    (folder / "org/example/two/1.0/two-1.0.jar").write_bytes(b"something else")
    with pytest.raises(DownloadError, match=r"^two-1\.0\.jar came from http://127.* with other bytes") as caught:
        fetch_jars([good, bad], name="some")
    assert "\n" not in str(caught.value)
    assert left_in(cache) == set()


@pytest.mark.usefixtures("repository")
def test_a_jar_that_is_not_there_is_named():
    """A jar that the repository does not have is an error that names it, in one line."""
    with pytest.raises(DownloadError, match="missing") as caught:
        fetch_jars([Jar("org.example", "missing", "1.0", "0" * 64)], name="some")
    assert "\n" not in str(caught.value)


def test_a_repository_out_of_reach_says_what_to_do(monkeypatch):
    """The error says what was tried, why it failed, and both ways round: another repository, or a broker."""
    repository = f"http://127.0.0.1:{free_port()}/"
    monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", repository)
    with pytest.raises(DownloadError) as caught:
        fetch_jars([Jar("org.example", "one", "1.0", "0" * 64)], name="some")
    message = str(caught.value)
    assert f"with Ivy from {repository}" in message
    assert "Connection refused" in message
    assert "HEADRACE_MAVEN_REPOSITORY" in message
    assert "HEADRACE_TEST_BOOTSTRAP=host:port" in message
    assert "\n" not in message


def test_a_folder_is_a_repository_too(tmp_path, monkeypatch):
    """A file: URL works, for machines without a network."""
    jar = put_jar(tmp_path / "by hand", "one")
    monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", (tmp_path / "by hand").as_uri())
    (path,) = fetch_jars([jar], name="some")
    assert jar.is_intact(path.parent)


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    """Where there is no room for the jars, the error says so and names the variable that helps."""
    java = Path(tmp_path / "java" / "bin" / "java")
    java.parent.mkdir(parents=True)
    java.write_text(FULL_DISK.format(home=java.parents[1]))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    with pytest.raises(DiskFullError, match=r"^no space left in .*HEADRACE_CACHE$"):
        fetch_jars([Jar("org.example", "one", "1.0", "0" * 64)], name="some")
