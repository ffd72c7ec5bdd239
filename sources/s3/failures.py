"""What boto3 raises, in our words: whether another attempt can mend it, and if not, what to do."""

import contextlib
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING

import attrs

from headrace.framework.errors import (
    ObjectArchivedError,
    ObjectChangedError,
    ObjectVanishedError,
    PipelineError,
    RetriableError,
    SourceError,
    Where,
)

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

__all__ = ["PASSING_STATUS", "s3_failures"]

PASSING_STATUS = frozenset({408, 429, 500, 502, 503, 504})
PASSING_CODES = frozenset(
    {
        "InternalError",
        "OperationAborted",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)

ELSEWHERE = "the bucket is in another region{region}: set aws.s3.region to the bucket's own"
LASTING: dict[str, tuple[type[SourceError], str]] = {
    "NoSuchBucket": (SourceError, "there is no such bucket: check aws.s3.bucket.name and aws.s3.endpoint"),
    "InvalidBucketName": (SourceError, "the server refuses the bucket's name: check aws.s3.bucket.name"),
    "AccessDenied": (
        SourceError,
        "access is denied: allow the credentials in use s3:ListBucket on the bucket and s3:GetObject on its objects",
    ),
    "AccountProblem": (SourceError, "the account has a problem: ask its owner"),
    "InvalidAccessKeyId": (SourceError, "the server does not know the access key: check aws.access.key.id"),
    "SignatureDoesNotMatch": (SourceError, "the secret does not fit the access key: check aws.secret.access.key"),
    "ExpiredToken": (SourceError, "the session token has expired: get new credentials and start again"),
    "InvalidToken": (SourceError, "the session token is not valid: get new credentials and start again"),
    "RequestTimeTooSkewed": (SourceError, "this machine's clock differs too much from the server's: set it"),
    "PermanentRedirect": (SourceError, ELSEWHERE),
    "AuthorizationHeaderMalformed": (SourceError, ELSEWHERE),
    "IllegalLocationConstraintException": (SourceError, ELSEWHERE),
    "NoSuchKey": (ObjectVanishedError, "the object is gone: it was deleted after it was listed (see data.loss)"),
    "PreconditionFailed": (
        ObjectChangedError,
        "the object has been overwritten since it was listed (see s3.overwrite.policy)",
    ),
    "InvalidRange": (ObjectChangedError, "the object is shorter than when it was listed (see s3.overwrite.policy)"),
    "InvalidObjectState": (ObjectArchivedError, "the object lies in an archive: have it restored, or leave it out"),
}
UNKNOWN = (SourceError, "the server refuses, and its own words say why")
BY_STATUS = {301: "PermanentRedirect", 403: "AccessDenied", 412: "PreconditionFailed", 416: "InvalidRange"}


@contextlib.contextmanager
def s3_failures(where: Where, *, endpoint: str | None = None) -> Iterator[None]:
    """Raise what boto3 raises inside as a `RetriableError` or a `SourceError` at `where`, with its cause.

    What is neither boto3's, nor the network's, passes as it is.
    """
    from botocore import exceptions as boto  # noqa: PLC0415 - comes with the extra
    from botocore.parsers import ResponseParserError  # noqa: PLC0415 - as above
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 - as above

    try:
        yield
    except boto.ClientError as error:
        raise _from_answer(error, where) from error
    except (boto.HTTPClientError, boto.ConnectionError, ResponseParserError, HTTPError, OSError) as error:
        raise _from_connection(error, where, endpoint) from error
    except boto.BotoCoreError as error:
        raise _from_boto(error, where) from error


@attrs.frozen
class _Answer:
    code: str
    status: int
    message: str
    region: str
    operation: str

    @classmethod
    def of(cls, error: "ClientError") -> "_Answer":
        said = error.response.get("Error", {})
        meta = error.response.get("ResponseMetadata", {})
        region = said.get("Region") or meta.get("HTTPHeaders", {}).get("x-amz-bucket-region")
        return cls(
            code=str(said.get("Code", "")),
            status=int(meta.get("HTTPStatusCode") or 0),
            message=str(said.get("Message") or "no reason given"),
            region=f" ({region})" if region else "",
            operation=error.operation_name,
        )


def _from_answer(error: "ClientError", where: Where) -> PipelineError:
    answer = _Answer.of(error)
    said = f"{answer.code or answer.status} on {answer.operation}: {answer.message}"
    if answer.operation.startswith("AssumeRole") and answer.code not in PASSING_CODES:
        return SourceError(f"STS refuses the role: check aws.sts.role.*, and who may assume it ({said})", where)
    if answer.code in PASSING_CODES or answer.status in PASSING_STATUS:
        return RetriableError(f"the server asks for patience: try again ({said})", where)
    kind, advice = LASTING.get(answer.code) or LASTING.get(_code_for(answer)) or UNKNOWN
    return kind(f"{advice.format(region=answer.region)} ({said})", where)


def _code_for(answer: _Answer) -> str:
    """The code that a bare status stands for: a HEAD has no body, and some proxies answer in HTML."""
    if answer.status == HTTPStatus.NOT_FOUND:
        return "NoSuchKey" if answer.operation.endswith("Object") else "NoSuchBucket"
    return BY_STATUS.get(answer.status, "")


def _from_connection(error: Exception, where: Where, endpoint: str | None) -> PipelineError:
    server = endpoint or "the server"
    said = " ".join(str(error).split())
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return SourceError(f"the certificate of {server} is not trusted: name its authority in AWS_CA_BUNDLE", where)
    return RetriableError(f"the connection to {server} failed: check aws.s3.endpoint if it lasts ({said})", where)


def _from_boto(error: Exception, where: Where) -> PipelineError:
    from botocore import exceptions as boto  # noqa: PLC0415 - comes with the extra

    said = " ".join(str(error).split())
    if isinstance(error, boto.IncompleteReadError):
        return RetriableError(f"the connection broke before the end of the object: try again ({said})", where)
    if isinstance(error, (boto.CredentialRetrievalError, boto.MetadataRetrievalError)):
        return RetriableError(f"the credentials could not be fetched: check their provider if it lasts ({said})", where)
    if isinstance(error, boto.NoCredentialsError):
        return SourceError(
            "there are no credentials: set aws.access.key.id and aws.secret.access.key, aws.profile, aws.sts.role.arn, "
            "or give the machine some that boto3 finds by itself",
            where,
        )
    return SourceError(f"boto3 refuses the request: check the aws.* keys ({said})", where)
