"""Whole objects by GETs that we sign ourselves, over connections that stay open.

A GET of boto3's costs a millisecond of CPU, nearly all of it before and after the request; this one a twentieth.
https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html has the signature.
"""

import hmac
import logging
import ssl
import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import attrs

from headrace.framework.errors import RetriableError, Where
from headrace.framework.stage import Stage
from headrace.sources.s3.client import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, S3Client
from headrace.sources.s3.failures import PASSING_STATUS
from headrace.sources.s3.kept_connection import KeptConnection
from headrace.sources.s3.objects import S3Object, plain_etag, same_etag

__all__ = ["Place", "SignedGets", "signature_headers"]

log = logging.getLogger(__name__)

_ANY = "any"
_UNSIGNED = "UNSIGNED-PAYLOAD"
_SMALL_PAGE = 64 * 1024
_LEFT_AS_THEY_ARE = "/-_.~"
_ABOUT_THE_OBJECT = frozenset({HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.PRECONDITION_FAILED})


@attrs.frozen(kw_only=True)
class Place:
    """Where a bucket's objects are: `path` comes before their names."""

    scheme: str
    host: str
    path: str
    region: str

    @classmethod
    def of(cls, client: Any, bucket: str) -> "Place":
        """As boto3 would ask for them."""
        url = client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": _ANY})
        told = urlsplit(url)
        return cls(
            scheme=told.scheme,
            host=told.netloc,
            path=told.path.removesuffix(_ANY),
            region=client.meta.region_name,
        )

    @property
    def is_behind_a_proxy(self) -> bool:
        """Whether the environment has a proxy for it."""
        return self.scheme in getproxies() and not proxy_bypass(self.host)

    def target(self, key: str) -> str:
        """The path of an object as it stands in the request."""
        return self.path + quote(key, safe=_LEFT_AS_THEY_ARE)


@attrs.define
class SignedGets:
    """Fetches whole objects of one bucket for several threads, each over its own connection, until it is closed.

    It is an optimisation and knows the usual case only: an answer of 200 with the version that was listed, as long as
    it should be. Anything else raises, and whoever wants the object asks boto3, who knows what is meant. Where that has
    nothing to do with the object, `is_of_use` is false from then on: asking twice would cost more than it saves.
    """

    place: Place
    credentials: Any
    trusting: ssl.SSLContext | None = None
    is_of_use: bool = attrs.field(default=True, init=False)
    _own: threading.local = attrs.field(factory=threading.local, init=False)
    _all: list[KeptConnection] = attrs.field(factory=list, init=False)

    @classmethod
    def for_bucket(cls, client: S3Client, bucket: str) -> "SignedGets | None":
        """Those that ask the client's server with the client's credentials; None where only boto3 knows how."""
        try:
            # botocore shows no way to the credentials that a client has, nor to whom it trusts.
            credentials, verify = client._request_signer._credentials, client._endpoint.http_session._verify  # type: ignore[attr-defined] # noqa: SLF001
            place = Place.of(client, bucket)
        except Exception as error:  # noqa: BLE001 - the first object is asked for by boto3, which says what is wrong
            log.debug("objects of %s are fetched by boto3: %s", bucket, error)
            return None
        if credentials is None or place.is_behind_a_proxy:
            return None
        return cls(place, credentials, _trusting(verify) if place.scheme == "https" else None)

    def fetch(self, found: S3Object) -> bytes:
        """All of an object, in one request; one more where a connection that was kept turns out to be closed."""
        try:
            answer = self._asked(found).answer(max(found.size, _SMALL_PAGE))
        except Exception:
            self.is_of_use = False
            raise
        etag = plain_etag(answer.headers.get("etag"))
        is_this = not (etag and found.etag) or same_etag(etag, found.etag)
        content = answer.content
        if answer.status == HTTPStatus.OK and is_this and content is not None and len(content) == found.size:
            return content
        if answer.status not in _ABOUT_THE_OBJECT | PASSING_STATUS:
            self.is_of_use = False
        length = "an unknown number of" if content is None else len(content)
        said = f"the server answers {answer.status} {answer.reason} and {length} bytes"
        raise RetriableError(said, Where(stage=Stage.READ, object=found.uri))

    def close(self) -> None:
        """Close the connections; what is under way over them fails."""
        self.is_of_use = False
        for connection in self._all:
            connection.close()

    def _asked(self, found: S3Object) -> KeptConnection:
        target = self.place.target(found.key)
        more = {} if found.if_match is None else {"if-match": found.if_match}
        headers = signature_headers(self.place, self.credentials.get_frozen_credentials(), target, more, time.gmtime())
        connection: KeptConnection | None = getattr(self._own, "connection", None)
        if connection is not None and connection.is_open:
            try:
                connection.ask(target, headers)
            except OSError as error:
                log.debug("a connection to %s that was kept is closed: %s", self.place.host, error)
            else:
                return connection
        connection = self._connected()
        connection.ask(target, headers)
        return connection

    def _connected(self) -> KeptConnection:
        made = KeptConnection.to(self.place.host, self.trusting, connect_s=CONNECT_TIMEOUT_S, read_s=READ_TIMEOUT_S)
        self._own.connection = made
        self._all.append(made)
        return made


def signature_headers(
    place: Place, credentials: Any, target: str, more: Mapping[str, str], at: time.struct_time
) -> dict[str, str]:
    """The headers of a GET that Amazon's signature, version 4, wants; `more` are signed with them."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", at)
    signed = {"host": place.host, **more, "x-amz-content-sha256": _UNSIGNED, "x-amz-date": stamp}
    if credentials.token:
        signed["x-amz-security-token"] = credentials.token
    names = ";".join(signed)
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    request = f"GET\n{target}\n\n{lines}\n{names}\n{_UNSIGNED}"
    scope = f"{stamp[:8]}/{place.region}/s3/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    signing = _signing(credentials.secret_key, scope).copy()
    signing.update(to_sign.encode())
    said = f"Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signing.hexdigest()}"
    return {**signed, "authorization": f"AWS4-HMAC-SHA256 {said}"}


@lru_cache(maxsize=16)
def _signing(secret_key: str, scope: str) -> hmac.HMAC:
    """What signs with the key of a day, whose making gives other threads the interpreter four times: take a copy."""
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, digestmod="sha256")


def _trusting(verify: Any) -> ssl.SSLContext:
    """Trusts whom boto3 trusts: the authorities that the environment or a profile names, or those that come with it."""
    from botocore.httpsession import get_cert_path  # noqa: PLC0415 - heavy

    return ssl.create_default_context(cafile=get_cert_path(verify))
