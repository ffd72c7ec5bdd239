"""What the tests of all servers share."""

import datetime as dt
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from headrace.testing.engines import Engine


@pytest.fixture(params=["local", "processes", "spark"])
def engine(request, monkeypatch):
    """The engines, for tests that run on each of them; or those that a test names."""
    monkeypatch.syspath_prepend(request.config.rootpath)  # a process of its own imports a test's sources by their names
    spark = request.getfixturevalue("spark_on_threads") if request.param == "spark" else None
    return Engine(request.param, spark=spark)


@pytest.fixture
def certificate_of(tmp_path):
    """Make a certificate of an address, which signs itself, and its key."""
    return lambda host: _made(host, tmp_path)


def _made(host, folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "server.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "server.pem", folder / "server.key"
