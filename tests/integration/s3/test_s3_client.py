"""Who asks, whom, and what an answer that is no object means."""

import re

import pytest

from headrace.framework.errors import (
    ObjectArchivedError,
    ObjectChangedError,
    ObjectVanishedError,
    RetriableError,
    SourceError,
    Where,
)
from headrace.framework.stage import Stage
from headrace.sources.s3.attempts import Attempts
from headrace.sources.s3.client import Connection, Role, make_client
from headrace.sources.s3.failures import s3_failures
from headrace.sources.s3.listing import Listing, list_objects
from headrace.testing.faulty_s3 import Answer, everything
from headrace.testing.processes import free_port

WHERE = Where(stage=Stage.READ, object="s3://bucket/key")


@pytest.fixture
def ask(faulty):
    """Ask for an object by a connection, and give back the request as the server saw it."""
    made = []

    def ask(connection):
        client = make_client(connection)
        made.append(client)
        with pytest.raises(ObjectVanishedError), s3_failures(WHERE):
            client.get_object(Bucket="some-bucket", Key="some/key")
        return faulty.requests[-1]

    faulty.script(*[Answer(404, "NoSuchKey")] * 3)
    yield ask
    for client in made:
        client.close()


def asking(request):
    """The access key that signed a request."""
    return re.search(r"Credential=([^/]+)/", request.headers["authorization"])[1]


@pytest.fixture
def aws_files(tmp_path, monkeypatch):
    """AWS configuration files of this test's own, with nothing in the environment that would win over them."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "credentials"
    path.write_text("[me]\naws_access_key_id = mine\naws_secret_access_key = secret\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_a_key_pair_asks_with_the_key_in_the_path(faulty, ask):
    """With an endpoint, the bucket is in the path; the key pair signs; the user agent names Headrace."""
    request = ask(Connection(endpoint=faulty.endpoint, access_key_id="me", secret_access_key="x"))  # noqa: S106
    assert request.path == "/some-bucket/some/key"
    assert asking(request) == "me"
    assert "headrace/" in request.headers["user-agent"]


def test_the_region_signs(faulty, ask):
    """The region that was asked for is the one that requests are signed for."""
    request = ask(
        Connection(region="eu-north-1", endpoint=faulty.endpoint, access_key_id="me", secret_access_key="x")  # noqa: S106
    )
    assert "/eu-north-1/s3/" in request.headers["authorization"]


@pytest.mark.usefixtures("aws_files")
def test_a_profile_asks(faulty, ask):
    """The profile's own key signs."""
    assert asking(ask(Connection(endpoint=faulty.endpoint, profile="me"))) == "mine"


@pytest.mark.usefixtures("aws_files")
def test_the_default_chain_asks(faulty, ask, monkeypatch):
    """Without key pair and profile, what boto3 finds by itself signs."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    assert asking(ask(Connection(endpoint=faulty.endpoint))) == "from-the-environment"


def test_a_role_is_assumed_and_its_credentials_ask(faulty, ask):
    """With a role the key pair asks STS, and S3 is asked with what STS gave, token and all."""
    role = Role(arn="arn:aws:iam::123456789012:role/reader", session_name="headrace", endpoint=faulty.endpoint)
    request = ask(
        Connection(endpoint=faulty.endpoint, access_key_id="me", secret_access_key="x", role=role)  # noqa: S106
    )
    assumed = faulty.requests[0]
    assert assumed.method == "POST"
    assert asking(assumed) == "me"
    assert asking(request).startswith("ASIA")
    assert request.headers["x-amz-security-token"]


def test_a_role_is_asked_for_with_its_external_id():
    """The external id, the session's name and its length are part of what STS is asked."""
    assert Role(arn="a", session_name="s", external_id="e", duration_s=900).request() == {
        "RoleArn": "a",
        "RoleSessionName": "s",
        "ExternalId": "e",
        "DurationSeconds": 900,
    }


def test_a_role_that_is_refused_is_named_as_such(faulty):
    """When STS refuses, the error speaks of the role and not of the bucket."""
    faulty.script(Answer(403, "AccessDenied", on=everything))
    role = Role(arn="arn:aws:iam::123456789012:role/reader", session_name="headrace", endpoint=faulty.endpoint)
    client = make_client(
        Connection(endpoint=faulty.endpoint, access_key_id="me", secret_access_key="x", role=role)  # noqa: S106
    )
    with pytest.raises(SourceError, match=r"STS refuses the role: check aws.sts.role.\*"), s3_failures(WHERE):
        client.get_object(Bucket="some-bucket", Key="key")
    client.close()


@pytest.mark.usefixtures("aws_files")
def test_nobody_to_ask_says_what_to_set(faulty):
    """Without any credentials the error names the keys that give some."""
    client = make_client(Connection(endpoint=faulty.endpoint))
    with pytest.raises(SourceError, match=r"there are no credentials: set aws.access.key.id"), s3_failures(WHERE):
        client.get_object(Bucket="some-bucket", Key="key")
    client.close()


@pytest.mark.usefixtures("aws_files")
def test_a_profile_that_is_not_there_is_an_error_of_the_source():
    """A profile that no file has fails when the client is made, in our words."""
    with pytest.raises(SourceError, match="nobody"):
        make_client(Connection(profile="nobody"))


def test_finding_7_retries_are_ours_with_an_endpoint_too(faulty):
    """Finding 7: boto3 tries once; how often a request is sent is what the configuration says, endpoint or not."""
    faulty.script(*[Answer(503, "SlowDown", on=everything)] * 20)
    client = make_client(Connection(endpoint=faulty.endpoint, access_key_id="me", secret_access_key="x"))  # noqa: S106
    with pytest.raises(RetriableError):
        list(list_objects(client, Listing(bucket="some-bucket"), Attempts(retries=1)))
    assert len(faulty.requests) == 2
    client.close()


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (Answer(503, "SlowDown"), RetriableError, "try again"),
        (Answer(503, "ServiceUnavailable"), RetriableError, "try again"),
        (Answer(500, "InternalError"), RetriableError, "try again"),
        (Answer(502, ""), RetriableError, "try again"),
        (Answer(504, "GatewayTimeout"), RetriableError, "try again"),
        (Answer(429, "TooManyRequests"), RetriableError, "try again"),
        (Answer(400, "RequestTimeout"), RetriableError, "try again"),
        (Answer(400, "RequestLimitExceeded"), RetriableError, "try again"),
        (Answer(404, "NoSuchBucket"), SourceError, "check aws.s3.bucket.name"),
        (Answer(403, "AccessDenied"), SourceError, "s3:GetObject"),
        (Answer(403, ""), SourceError, "s3:GetObject"),
        (Answer(403, "InvalidAccessKeyId"), SourceError, "check aws.access.key.id"),
        (Answer(403, "SignatureDoesNotMatch"), SourceError, "check aws.secret.access.key"),
        (Answer(400, "ExpiredToken"), SourceError, "get new credentials"),
        (Answer(403, "RequestTimeTooSkewed"), SourceError, "set it"),
        (Answer(301, "PermanentRedirect"), SourceError, "set aws.s3.region"),
        (Answer(404, "NoSuchKey"), ObjectVanishedError, "data.loss"),
        (Answer(404, ""), ObjectVanishedError, "data.loss"),
        (Answer(412, "PreconditionFailed"), ObjectChangedError, "s3.overwrite.policy"),
        (Answer(416, "InvalidRange"), ObjectChangedError, "s3.overwrite.policy"),
        (Answer(403, "InvalidObjectState"), ObjectArchivedError, "restored"),
        (Answer(400, "SomethingNew"), SourceError, "as the script says"),
    ],
)
def test_an_answer_means_one_thing_and_says_what_to_do(client, faulty, answer, kind, words):
    """Each answer is exactly one of our errors, with its place, its cause, the server's words, and the next step."""
    faulty.script(*[answer] * 3)
    with pytest.raises(kind) as caught, s3_failures(WHERE):
        client.get_object(Bucket="some-bucket", Key="key")
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert str(caught.value).startswith("read, s3://bucket/key: ")
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_another_region_is_named(client, faulty):
    """Where the server says which region is right, the error says it."""
    faulty.script(*[Answer(301, "PermanentRedirect", headers={"x-amz-bucket-region": "eu-central-1"})] * 3)
    with pytest.raises(SourceError, match=r"in another region \(eu-central-1\): set aws.s3.region"), s3_failures(WHERE):
        client.get_object(Bucket="some-bucket", Key="key")


def test_a_server_that_cannot_be_reached_may_come_back():
    """A refused connection is retriable, and names the key to look at."""
    client = make_client(
        Connection(endpoint=f"http://127.0.0.1:{free_port()}", access_key_id="me", secret_access_key="x")  # noqa: S106
    )
    with pytest.raises(RetriableError, match=r"check aws\.s3\.endpoint") as caught, s3_failures(WHERE):
        client.get_object(Bucket="some-bucket", Key="key")
    assert caught.value.__cause__ is not None
    client.close()


def test_a_programming_error_is_not_dressed_up():
    """What is neither boto3's nor the network's passes as it is."""
    with pytest.raises(KeyError), s3_failures(WHERE):
        raise KeyError("ours")
