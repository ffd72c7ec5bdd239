"""Jars from Maven Central, without Maven: resolved by the Ivy that ships inside pyspark, checked by SHA-256.

A list such as `kafka-jars.txt` names every jar as `group:artifact:version sha256`, so nothing is resolved
transitively, no POM is read, and what is not in the list cannot get in. A jar is fetched once per user and its sum
is checked at every use.

`HEADRACE_MAVEN_REPOSITORY` names another repository of Maven's layout (a URL); the default is Ivy's own.
"""

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import attrs

from headrace.framework.cache import cache_folder, locked
from headrace.framework.errors import DiskFullError, DownloadError
from headrace.framework.java import find_java

__all__ = ["Jar", "fetch_jars", "read_jar_list"]

REPOSITORY_VARIABLE = "HEADRACE_MAVEN_REPOSITORY"


@attrs.frozen
class Jar:
    """One jar, by its coordinates and the sum of its bytes."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """What it is called in the cache."""
        return f"{self.artifact}-{self.version}.jar"

    def is_intact(self, folder: Path) -> bool:
        """Whether `folder` holds this jar, byte for byte."""
        path = folder / self.file_name
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256


def read_jar_list(path: Path) -> list[Jar]:
    """The jars that a list names; lines that begin with # are for people."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return [Jar(*re.split(r"[: ]", line)) for line in lines if line and not line.startswith("#")]


def fetch_jars(jars: Sequence[Jar], *, name: str) -> list[Path]:
    """Where `jars` lie, under `name` in the user's cache; what is missing or broken there is fetched first.

    Raises `DownloadError` with what was tried, `DiskFullError` where there is no room.
    """
    folder = cache_folder() / "jars" / name
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock"):
        missing = [jar for jar in jars if not jar.is_intact(folder)]
        if missing:
            _fetch(missing, folder)
    return [folder / jar.file_name for jar in jars]


def _fetch(jars: Sequence[Jar], folder: Path) -> None:
    for left_by_a_killed_one in folder.glob(".fetching-*"):
        shutil.rmtree(left_by_a_killed_one, ignore_errors=True)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as work:
            _run_ivy(jars, Path(work))
            broken = [jar.file_name for jar in jars if not jar.is_intact(Path(work))]
            if broken:
                raise DownloadError(
                    f"{', '.join(broken)} came from {_repository_for_people()} with other bytes than the project "
                    f"expects: something on the way changes downloads; name a repository you trust in "
                    f"{REPOSITORY_VARIABLE}, or use a broker of your own (HEADRACE_TEST_BOOTSTRAP=host:port)"
                )
            for jar in jars:
                (Path(work) / jar.file_name).replace(folder / jar.file_name)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise DiskFullError(
            f"no space left in {folder}: free some, or name another folder in HEADRACE_CACHE"
        ) from error


def _run_ivy(jars: Iterable[Jar], work: Path) -> None:
    (work / "ivy.xml").write_text(_ivy_module(jars))
    (work / "settings.xml").write_text(_ivy_settings())
    answer = subprocess.run(
        [
            find_java().executable,
            *("-jar", _ivy_jar()),
            *("-settings", work / "settings.xml"),
            *("-cache", work / "ivy-cache"),
            *("-ivy", work / "ivy.xml"),
            *("-confs", "default"),
            *("-retrieve", f"{work}/[artifact]-[revision].[ext]"),
        ],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    shutil.rmtree(work / "ivy-cache", ignore_errors=True)
    if "No space left on device" in answer.stdout + answer.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if answer.returncode or "UNRESOLVED DEPENDENCIES" in answer.stdout:
        raise DownloadError(
            f"the jars could not be fetched with Ivy from {_repository_for_people()}: "
            f"{_first_reason(answer.stdout + answer.stderr)}; name another repository of Maven's layout in "
            f"{REPOSITORY_VARIABLE}, or use a broker of your own (HEADRACE_TEST_BOOTSTRAP=host:port)"
        )


def _first_reason(output: str) -> str:
    """The line of Ivy's long report that says why."""
    told = re.search(r"\((?:java[\w.]*\.)?(\w+(?:Exception|Error): .+)\)", output)
    if told:
        return told[1]
    failed = [
        line.strip() for line in output.splitlines() if re.search(r"not found|error|exception", line, re.IGNORECASE)
    ]
    return failed[0] if failed else "Ivy gave no reason"


def _repository_for_people() -> str:
    return os.environ.get(REPOSITORY_VARIABLE) or "Maven Central"


def _ivy_jar() -> Path:
    # Found without importing pyspark, which takes a second.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise DownloadError(
            "jars are fetched by the Ivy that comes with pyspark, and pyspark is not installed: "
            "pip install 'headrace[spark]', or use a broker of your own (HEADRACE_TEST_BOOTSTRAP=host:port)"
        )
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))


def _ivy_settings() -> str:
    repository = os.environ.get(REPOSITORY_VARIABLE)
    root = f" root={quoteattr(repository)}" if repository else ""
    # The sums that count are ours; asking for the repository's own would double the requests.
    return f"""<ivysettings>
  <settings defaultResolver="repository"/>
  <property name="ivy.checksums" value=""/>
  <timeout-constraints><timeout-constraint name="patient" connectionTimeout="20000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers><ibiblio name="repository" m2compatible="true" usepoms="false" timeoutConstraint="patient"{root}/>
  </resolvers>
</ivysettings>
"""


def _ivy_module(jars: Iterable[Jar]) -> str:
    dependencies = "\n".join(
        f'    <dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false"/>'
        for jar in jars
    )
    return f"""<ivy-module version="2.0">
  <info organisation="headrace" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconf="default->default">
{dependencies}
  </dependencies>
</ivy-module>
"""
