"""GETs that we sign ourselves: as boto3 signs them, and of use only where the answer is the usual one."""

import socket
import ssl
import threading
import time
from contextlib import closing

import attrs
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from headrace.framework.errors import RetriableError
from headrace.sources.s3.client import Connection, make_client
from headrace.sources.s3.listing import look_up
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.signed import Place, SignedGets, signature_headers
from headrace.testing.faulty_s3 import Answer, CutBody, Meanwhile, Pass

CONTENT = b'{"n":1}\n' * 20


@pytest.fixture
def put(s3, bucket, client, attempts):
    """Put an object there, and give it back as it is listed."""

    def put(key, content=CONTENT):
        s3.put_object(Bucket=bucket, Key=key, Body=content)
        return look_up(client, bucket, key, attempts)

    return put


@pytest.fixture
def gets(client, bucket):
    found = SignedGets.for_bucket(client, bucket)
    yield found
    found.close()


@given(
    key=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    secret=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1),
    token=st.none() | st.just("a/session+token=="),
    etag=st.none() | st.just('"0123-4"'),
)
def test_the_signature_is_boto3s(key, secret, token, etag):
    """For whatever key, secret and version, the request is signed as boto3's own signer signs the same request."""
    place = Place(scheme="https", host="bucket.s3.eu-central-1.amazonaws.com", path="/", region="eu-central-1")
    credentials = ReadOnlyCredentials("AKID", secret, token)
    more = {} if etag is None else {"if-match": etag}
    headers = signature_headers(place, credentials, place.target(key), more, time.gmtime(1_800_000_000))

    request = AWSRequest("GET", f"https://{place.host}{place.target(key)}", headers=more)
    for name in ("x-amz-security-token", "x-amz-content-sha256"):
        if name in headers:
            request.headers[name] = headers[name]
    request.context.update(timestamp=headers["x-amz-date"])
    signer = S3SigV4Auth(credentials, "s3", place.region)
    signature = signer.signature(signer.string_to_sign(request, _canonical(signer, request, headers)), request)

    assert headers["authorization"].endswith(f"Signature={signature}")


def _canonical(signer, request, headers):
    request.headers["X-Amz-Date"] = headers["x-amz-date"]
    return signer.canonical_request(request)


@pytest.mark.parametrize("key", ["plain.jsonl", "with space/ü+%~'().jsonl", "/leading", "a//b", "a/../b", "?q=1&x#y"])
def test_an_object_is_fetched_over_one_connection(gets, put, faulty, key):
    """Objects of whatever name come whole, one request each, all over the connection that is open."""
    found = put(key)
    before = len(faulty.gets)

    assert [gets.fetch(found), gets.fetch(found)] == [CONTENT] * 2
    assert len({request.connection for request in faulty.gets[before:]}) == 1
    assert len(faulty.gets[before:]) == 2


def test_a_connection_that_was_closed_meanwhile_is_opened_anew(gets, put, faulty):
    """A server that has closed an idle connection costs another request, and nothing else."""
    found = put("piece")
    gets.fetch(found)
    faulty._server.close_connections()

    assert gets.fetch(found) == CONTENT
    assert gets.is_of_use
    assert len({request.connection for request in faulty.gets}) == 2


@pytest.mark.parametrize(("status", "code"), [(404, "NoSuchKey"), (412, "PreconditionFailed"), (503, "SlowDown")])
def test_what_is_wrong_with_one_object_is_left_to_boto3(gets, put, faulty, status, code):
    """An object that has gone or changed, and a server that is busy, raise; the next object is fetched again."""
    found = put("piece")
    faulty.script(Answer(status, code))

    with pytest.raises(RetriableError, match=str(status)):
        gets.fetch(found)
    assert gets.is_of_use
    assert gets.fetch(found) == CONTENT


REFUSALS = [Answer(403, "AccessDenied"), Answer(301, "PermanentRedirect")]


@pytest.mark.parametrize("fault", [*REFUSALS, CutBody(7), CutBody(7, reset=True)])
def test_what_is_wrong_with_all_of_them_ends_it(gets, put, faulty, fault):
    """Where the server does not take the requests as they are, or the connection breaks, nobody asks in vain again."""
    found = put("piece")
    faulty.script(fault)

    with pytest.raises(Exception, match=r"403|301|closed|reset"):
        gets.fetch(found)
    assert not gets.is_of_use


def test_another_version_is_not_given_out(gets, put, faulty, s3, bucket):
    """Of an object that is overwritten with as many bytes, those of the new version are not taken for the old one's."""
    found = put("piece")
    other = CONTENT.replace(b"1", b"2")
    faulty.script(Meanwhile(lambda: s3.put_object(Bucket=bucket, Key="piece", Body=other)), Pass())

    with pytest.raises(RetriableError):
        gets.fetch(found)
    with pytest.raises(RetriableError, match="200"):
        gets.fetch(attrs.evolve(found, etag="W/weak"))


def test_a_server_behind_a_proxy_is_boto3s(client, bucket, monkeypatch):
    """Proxies are boto3's affair, and so are clients without credentials."""
    assert SignedGets.for_bucket(client, bucket) is not None

    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    elsewhere = make_client(Connection(endpoint="http://s3.example.com", access_key_id="key", secret_access_key="s"))  # noqa: S106
    assert SignedGets.for_bucket(elsewhere, bucket) is None
    elsewhere.close()


def test_over_tls_the_server_has_to_be_trusted(certificate_of):
    """Over TLS an object comes from a server whose certificate is of an authority that is trusted, and of its name."""
    certificate, key = certificate_of("127.0.0.1")
    found = S3Object(bucket="b", key="piece", etag="v", size=len(CONTENT), last_modified=0)
    nobody, its_own = ssl.create_default_context(), ssl.create_default_context(cafile=certificate)
    with TlsServer(certificate, key) as server:
        with closing(server.gets("127.0.0.1", its_own)) as gets:
            assert gets.fetch(found) == CONTENT
        for host, trusting in (("127.0.0.1", nobody), ("localhost", its_own)):
            with closing(server.gets(host, trusting)) as gets, pytest.raises(ssl.SSLCertVerificationError):
                gets.fetch(found)


class TlsServer:
    """Answers every connection with the same object, and closes it."""

    def __init__(self, certificate, key):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve)

    def gets(self, host, trusting):
        place = Place(scheme="https", host=f"{host}:{self.listener.getsockname()[1]}", path="/", region="r")
        return SignedGets(place, Credentials("key", "secret"), trusting)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                with self.context.wrap_socket(client, server_side=True) as secure:
                    secure.recv(10_000)
                    secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(CONTENT), CONTENT))
            except OSError:
                client.close()
