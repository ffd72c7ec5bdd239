"""An S3 server, embedded: moto's, as a process of its own, loopback only."""

import re
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from headrace.framework.errors import SetupError
from headrace.testing.processes import GuardedProcess

__all__ = ["EmbeddedS3"]

READY_WITHIN_S = 60.0
LISTENING = re.compile(r"Running on http://127\.0\.0\.1:(\d+)")

ACCESS_KEY = "headrace"
SECRET_KEY = "headrace-secret"  # noqa: S105 - of a server that asks nobody for one
REGION = "us-east-1"


@attrs.define
class EmbeddedS3:
    """An S3 of your own, for tests, demos and development; needs moto with its server (the extra `dev`).

    Started by `start` or a `with` block, which return when it listens; ended by `stop`, by the end of the block, and
    by the end of this process in whatever way. It takes a free port of 127.0.0.1, speaks plain HTTP with keys in the
    path, lets everybody in, and keeps everything in memory: what was put into it goes with it.

    Not promised: S3's speed, or its limits on names and rights. What moto does not do by itself (broken
    connections, throttling, listings that go astray) does `headrace.testing.FaultyS3` in front of it.
    """

    _process: GuardedProcess | None = attrs.field(default=None, init=False, repr=False)
    _port: int = attrs.field(default=0, init=False)

    @property
    def endpoint(self) -> str:
        """What to give a client as its endpoint."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def properties(self) -> dict[str, str]:
        """What a connector's configuration needs to find this server: endpoint, region and a key pair."""
        return {
            "aws.s3.endpoint": self.endpoint,
            "aws.s3.region": REGION,
            "aws.access.key.id": ACCESS_KEY,
            "aws.secret.access.key": SECRET_KEY,
        }

    @property
    def process(self) -> GuardedProcess:
        """The server's process, for tests that kill it."""
        if self._process is None:
            raise SetupError("this S3 server is not running: call start() first")
        return self._process

    def client(self) -> Any:
        """A boto3 client of this server, past any proxy, with boto3's own settings otherwise."""
        import boto3  # noqa: PLC0415 - heavy, and not needed until here
        from botocore.config import Config  # noqa: PLC0415 - as above

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(proxies={}),
        )

    def start(self) -> Self:
        """Start the server and wait until it listens."""
        folder = Path(tempfile.mkdtemp(prefix="headrace-s3-"))
        self._process = GuardedProcess(
            argv=[sys.executable, "-P", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            log=folder / "server.log",
            remove_at_end=[folder],
        )
        try:
            self._port = self._await_port()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server; its objects go with it."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _await_port(self) -> int:
        """The port that the server has taken: it says so when it listens, so nobody else can be meant."""
        deadline = time.monotonic() + READY_WITHIN_S
        while True:
            said = self.process.log.read_text(errors="replace")
            if found := LISTENING.search(said):
                return int(found[1])
            if self.process.returncode is not None:
                raise SetupError(
                    f"the S3 server ended with {self.process.returncode}: {self.process.tail()}; "
                    "it needs moto with its server: pip install 'moto[s3,server]'"
                )
            if time.monotonic() > deadline:
                raise SetupError(f"the S3 server did not listen within {READY_WITHIN_S:.0f} s: {self.process.tail()}")
            time.sleep(0.02)
