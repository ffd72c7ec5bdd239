"""Apache Kafka's own broker, embedded: one node, KRaft, loopback only."""

import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from headrace.framework.errors import BrokerStartError, DiskFullError, PortInUseError
from headrace.framework.java import find_java
from headrace.testing.jars import fetch_jars, read_jar_list
from headrace.testing.processes import GuardedProcess, free_port

__all__ = ["EmbeddedKafka"]

JAR_LIST = Path(__file__).with_name("kafka-jars.txt")
ROOM_NEEDED = 256 * 1024 * 1024
READY_WITHIN_S = 60.0
ATTEMPTS = 5

LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1}: %m%n
"""


@attrs.define
class EmbeddedKafka:
    """A broker of your own, for tests, demos and development.

    Started by `start` or a `with` block, which return when it takes its first produce; ended by `stop`, by the end
    of the block, and by the end of this process in whatever way. It listens on `port`, or on a free one, of
    127.0.0.1 only. Its data lies in the folder `data`, which stays and can be started again, or else in a temporary
    one, which goes with the broker. `properties` are added to the broker's own and win over them.

    Not promised: speed (256 MB of heap unless `heap` says otherwise, the quick compiler only) and safety of data
    against a power cut.
    """

    data: Path | None = attrs.field(default=None, kw_only=True)
    port: int = attrs.field(default=0, kw_only=True)
    properties: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    heap: str = attrs.field(default="256m", kw_only=True)
    cluster_id: str = attrs.field(default="", init=False)
    _process: GuardedProcess | None = attrs.field(default=None, init=False, repr=False)
    _running_port: int = attrs.field(default=0, init=False, repr=False)

    @property
    def bootstrap_servers(self) -> str:
        """What to give a client as `bootstrap.servers`."""
        return f"127.0.0.1:{self._running_port}"

    @property
    def process(self) -> GuardedProcess:
        """The broker's process, for tests that kill it."""
        if self._process is None:
            raise BrokerStartError("this broker is not running: call start() first")
        return self._process

    def start(self) -> Self:
        """Start the broker and wait until it is ready."""
        if self.port:
            _refuse_taken(self.port)
        jars = fetch_jars(read_jar_list(JAR_LIST), name="kafka")
        for attempt in range(ATTEMPTS):
            folder = self.data or Path(tempfile.mkdtemp(prefix="headrace-kafka-"))
            try:
                self._launch(folder, jars)
                self._await_ready()
            except PortInUseError:
                # Somebody took a free port between our look and the broker's bind: look again.
                self.stop()
                if self.port or attempt == ATTEMPTS - 1:
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                return self
        raise AssertionError("unreachable: the last attempt returns or raises")

    def stop(self) -> None:
        """Shut the broker down; it may be started again if its data was given a folder."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, folder: Path, jars: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_full(folder)
        self._running_port = self.port or free_port()
        properties = folder / "server.properties"
        logging = folder / "log4j2.properties"
        log = folder / "broker.log"
        properties.write_text(_as_properties({**_settings(folder, self._running_port), **self.properties}))
        logging.write_text(LOGGING)
        log.write_bytes(b"")
        java: list[str | Path] = [
            find_java().executable,
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            f"{jars}/*",
        ]
        self.cluster_id = _cluster_id_of(folder) or _format(folder, java, properties, log)
        self._process = GuardedProcess(
            argv=[
                *java,
                f"-Xmx{self.heap}",
                f"-Dlog4j2.configurationFile={logging}",
                "kafka.Kafka",
                properties,
            ],
            log=log,
            remove_at_end=[] if self.data else [folder],
        )

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while not _answers(self._running_port):
            self.refuse_dead()
            if time.monotonic() > deadline:
                raise BrokerStartError(
                    f"the broker did not answer on port {self._running_port} within {READY_WITHIN_S:.0f} s; "
                    f"its last words: {self.process.tail()}"
                )
            time.sleep(0.05)
        self._refuse_stranger()

    def refuse_dead(self) -> None:
        if self.process.returncode is None:
            return
        said = self.process.log.read_text(errors="replace")
        if "Address already in use" in said:
            raise PortInUseError(
                f"port {self._running_port} belongs to somebody else: choose another, or 0 for a free one"
            )
        if "No space left on device" in said:
            raise _disk_full(self.process.log.parent)
        if "Failed to acquire lock on file .lock" in said:
            raise BrokerStartError(
                f"another broker is running on the data in {self.process.log.parent}: stop it, or name another folder"
            )
        raise BrokerStartError(f"the broker ended with {self.process.returncode}: {self.process.tail()}")

    def _refuse_stranger(self) -> None:
        """That a port answers is not enough: it may be somebody else's broker that took it first."""
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - heavy, and not needed until here

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "reconnect.backoff.ms": 10})
        found = admin.list_topics(timeout=READY_WITHIN_S).cluster_id
        self.refuse_dead()
        if found != self.cluster_id:
            raise PortInUseError(
                f"port {self._running_port} was taken by the Kafka cluster {found}: choose another, or 0 for a free one"
            )


def _settings(folder: Path, port: int) -> dict[str, str]:
    controller = free_port()
    while controller == port:
        controller = free_port()
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(folder / "logs"),
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def _as_properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in settings.items())


def _cluster_id_of(folder: Path) -> str | None:
    """The id under which an earlier start formatted this folder."""
    try:
        lines = (folder / "logs" / "meta.properties").read_text().splitlines()
    except FileNotFoundError:
        return None
    return next((line.partition("=")[2] for line in lines if line.startswith("cluster.id=")), None)


def _format(folder: Path, java: list[str | Path], properties: Path, log: Path) -> str:
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    if cluster_id.startswith("-"):
        return _format(folder, java, properties, log)  # the tool would take it for an option
    tool = [*java, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", properties]
    answer = subprocess.run(tool, capture_output=True, text=True, errors="replace", check=False)
    if answer.returncode:
        log.write_text(answer.stdout + answer.stderr)
        if "No space left on device" in answer.stdout + answer.stderr:
            raise _disk_full(folder)
        raise BrokerStartError(f"the data folder {folder} could not be prepared: {answer.stderr.strip()[-500:]}")
    return cluster_id


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise PortInUseError(
                f"port {port} cannot be had ({error.strerror}): choose another, or 0 for a free one"
            ) from error


def _refuse_full(folder: Path) -> None:
    if shutil.disk_usage(folder).free < ROOM_NEEDED:
        raise _disk_full(folder)


def _disk_full(folder: Path) -> DiskFullError:
    return DiskFullError(
        f"no room for a broker's data in {folder} (it wants {ROOM_NEEDED // 2**20} MB): free some, or name another "
        "folder (--data, or TMPDIR for a temporary one)"
    )
