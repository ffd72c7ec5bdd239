"""What redis-py raises, in our words: whether another attempt can mend it, and if not, what to do."""

import contextlib
from collections.abc import Iterator

from headrace.framework.errors import PipelineError, RetriableError, SourceError, Where

__all__ = ["redis_failures", "said_of"]

PASSING = ("BUSY", "UNBLOCKED", "OOM", "NOREPLICAS")
RIGHTS = (
    "+@read +@connection +multi +exec; with redis.mode=group also +xreadgroup +xack +xautoclaim +xgroup; with a time "
    "in stop.rule also +time"
)


@contextlib.contextmanager
def redis_failures(where: Where) -> Iterator[None]:
    """Raise what redis-py raises inside as a `RetriableError` or a `SourceError` at `where`, with its cause."""
    from redis import exceptions  # noqa: PLC0415 - comes with the extra

    try:
        yield
    except (exceptions.RedisError, exceptions.RedisClusterException, OSError) as error:
        raise _ours(error, where) from error


def said_of(error: BaseException) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _ours(error: Exception, where: Where) -> PipelineError:
    from redis import exceptions  # noqa: PLC0415 - comes with the extra

    said = said_of(error)
    # Of a cluster that cannot be connected the cause says why the last of its nodes could not.
    cause = error.__cause__ if isinstance(error, exceptions.RedisClusterException) else None
    advice = _advice(error, said) if cause is None else _advice(cause, said_of(cause))
    if advice is not None:
        return SourceError(f"{advice} ({said})", where)
    return RetriableError(f"the server cannot be asked: check redis.url if it lasts ({said})", where)


def _advice(error: BaseException, said: str) -> str | None:
    """What to do about an error that lasts; None for one that may pass."""
    from redis import exceptions  # noqa: PLC0415 - comes with the extra

    passing = (exceptions.AskError, exceptions.ClusterDownError, exceptions.ReadOnlyError, exceptions.TryAgainError)
    refused = isinstance(error, exceptions.ResponseError) and not isinstance(error, passing)
    cases = (
        (isinstance(error, exceptions.NoPermissionError), f"the user may not do this: allow it {RIGHTS}"),
        (
            isinstance(error, exceptions.AuthenticationError) or said.startswith(("NOAUTH", "WRONGPASS")),
            "the server refuses the user: check redis.username and redis.password",
        ),
        (said.startswith("WRONGTYPE"), "the key is no stream: check redis.streams"),
        (
            "Cluster mode is not enabled" in said,
            "the server is no cluster, or the user may not ask it for its slots: check redis.cluster",
        ),
        ("CERTIFICATE_VERIFY_FAILED" in said, "the server's certificate is not trusted: check redis.tls.ca"),
        ("unknown command" in said.lower(), "the server knows no streams: Redis 5 or newer is needed"),
        (refused and not said.startswith(PASSING), "the server refuses, and its own words say why"),
    )
    return next((advice for applies, advice in cases if applies), None)
