"""What is hidden, and what references stand for."""

import pytest

from headrace.framework.secrets import looks_secret, masked, resolve, shown


@pytest.mark.parametrize(
    "key",
    [
        "aws.secret.access.key",
        "ssl.keystore.password",
        "producer.override.sasl.jaas.config",
        "sasl.oauthbearer.client.secret",
        "nats.token",
        "aws.credentials.file",
        "value.converter.basic.auth.user.info",
        "ssl.key.pem",
        "my_api_key",
        "Redis.Passwd",
    ],
)
def test_secret_keys(key):
    """The value of a key that speaks of a secret is hidden."""
    assert looks_secret(key)
    assert masked({key: "x"}) == {key: "[hidden]"}


@pytest.mark.parametrize(
    "key", ["name", "topic", "aws.access.key.id", "key.converter", "sasl.oauthbearer.token.endpoint.url", "monkey"]
)
def test_other_keys(key):
    """Any other value is shown."""
    assert masked({key: "x"}) == {key: "x"}


def test_who_signs_in_by_url():
    """What stands before the @ of a URL is hidden, under any key."""
    assert shown("redis.url", "redis://me:pw@host:6379/0") == "redis://[hidden]@host:6379/0"
    assert shown("nats.servers", "nats://tok@a:1,nats://b:2") == "nats://[hidden]@a:1,nats://b:2"


def test_a_reference_is_shown():
    """A reference is no secret, but what is written beside one may be."""
    assert shown("ssl.key.password", "${env:KEY}") == "${env:KEY}"
    assert shown("ssl.key.password", "x${env:KEY}") == "[hidden]"


def test_resolving(monkeypatch, tmp_path):
    """References are replaced wherever they stand, and what comes in by one is not searched for others."""
    monkeypatch.setenv("A", "${env:B}")
    monkeypatch.setenv("B", "b")
    (tmp_path / "x.properties").write_text("key = value\n")
    assert resolve(f"<${{env:A}} ${{env:B}} ${{file:{tmp_path}/x.properties:key}}>") == "<${env:B} b value>"
    assert resolve("{{topic}} $env {x:y} ${nothing}") == "{{topic}} $env {x:y} ${nothing}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${env:NOT_SET_ANYWHERE}", "NOT_SET_ANYWHERE"),
        ("${file:nowhere.properties:key}", "nowhere.properties"),
        ("${file:nowhere.properties}", "PATH:KEY"),
        ("${file:{folder}:key}", "cannot be read"),
        ("${file:{folder}/bytes.properties:key}", "UTF-8"),
        ("${file:{folder}/escape.properties:key}", "line 2"),
        ("${file:{folder}/good.properties:key}", "no key 'key'"),
        ("${vault:secret/x:y}", "vault"),
    ],
)
def test_leading_nowhere(tmp_path, text, message):
    """A reference that leads nowhere is refused with its reason, which holds nothing of what is in the file."""
    (tmp_path / "bytes.properties").write_bytes(b"key=\xff")
    (tmp_path / "escape.properties").write_bytes(b"a=1\nkey=\\uhunter2")
    (tmp_path / "good.properties").write_text("word=hunter2")
    with pytest.raises(ValueError, match=message) as caught:
        resolve(text.replace("{folder}", str(tmp_path)))
    assert "hunter2" not in str(caught.value)
