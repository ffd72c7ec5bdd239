"""Apache Kafka's own broker, embedded: one node, KRaft, loopback only."""

import contextlib
import fcntl
import glob
import os
import re
import secrets
import shlex
import shutil
import socket
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
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
PROPERTIES = "server.properties"
OPTIONS_VARIABLE = "HEADRACE_KAFKA_OPTS"
ROOM_NEEDED = 256 * 1024 * 1024
READY_WITHIN_S = 60.0
ANSWER_WITHIN_S = 5.0
ATTEMPTS = 5
REMOVED_SOON = ".deleted"
DISK_BLOCK = 512
"""What `stat` counts in, whatever the file system."""

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
    one, which goes with the broker. A broker that is started again without a `port` takes the one it had, if that is
    still free: a transaction that a `kill -9` left half committed waits for the node at its old address. `properties`
    are added to the broker's own and win over them.

    The environment's HEADRACE_KAFKA_OPTS has more options for its JVM.

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
        jars = fetch_jars(read_jar_list(JAR_LIST), name="kafka")
        for attempt in range(ATTEMPTS):
            if self.port:
                _refuse_taken(self.port)
            try:
                self._launch(jars)
                self._await_ready()
            except PortInUseError:
                # Somebody took a free port between our look and the broker's bind: look again.
                self.process.kill()
                self.stop()
                if attempt == ATTEMPTS - 1:
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

    def bytes_on_disk(self, topic: str) -> int:
        """What the topic takes on the disk now, with indexes and all, but without files that only wait for removal."""
        found = 0
        for file in (self.process.log.parent / "logs").glob(f"{glob.escape(topic)}-[0-9]*/*"):
            # The broker's cleaner may take a file away at any time.
            with contextlib.suppress(FileNotFoundError):
                found += 0 if file.suffix == REMOVED_SOON else file.stat().st_blocks * DISK_BLOCK
        return found

    def refuse_dead(self) -> None:
        """Raise what ended the broker, or keeps it from running, if something does: for those who wait meanwhile."""
        said = self.process.output()
        # A broker that lost its port to somebody else takes a minute to give up.
        if "Address already in use" in said:
            raise PortInUseError(
                f"port {self._running_port} belongs to somebody else: choose another, or 0 for a free one"
            )
        if self.process.returncode is None:
            return
        if "No space left on device" in said:
            raise _disk_full(self.process.log.parent)
        if "Failed to acquire lock on file .lock" in said:
            raise _data_in_use(self.process.log.parent)
        raise BrokerStartError(
            f"the broker ended with exit code {self.process.returncode}; its last words: {_last_words(said)}"
        )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, jars: Sequence[Path]) -> None:
        folder = self.data or Path(tempfile.gettempdir()) / f"headrace-kafka-{secrets.token_hex(4)}"
        try:
            self._prepare(folder)
            _refuse_full(folder)
            self._running_port = self.port or _former_port(folder) or free_port()
            settings = {**_settings(folder, self._running_port), **self.properties}
            (folder / PROPERTIES).write_text(_as_properties(settings))
            (folder / "log4j2.properties").write_text(LOGGING)
            (folder / "broker.log").write_bytes(b"")
            formatted = _cluster_id_of(folder)
            self.cluster_id = formatted or _new_cluster_id()
            self._process = GuardedProcess(
                argv=["/bin/sh", "-c", self._commands(folder, jars, to_format=not formatted)],
                log=folder / "broker.log",
                remove_at_end=[] if self.data else [folder],
            )
        except BaseException:
            if not self.data:
                shutil.rmtree(folder, ignore_errors=True)
            raise

    def _prepare(self, folder: Path) -> None:
        if self.data is None:
            folder.mkdir(mode=0o700)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            _refuse_shared(folder)

    def _commands(self, folder: Path, jars: Sequence[Path], *, to_format: bool) -> str:
        """Both programs for one guard, so that whatever ends us in between leaves nothing behind either."""
        properties = str(folder / PROPERTIES)
        java = [str(find_java().executable), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        java += shlex.split(os.environ.get(OPTIONS_VARIABLE, ""))
        java += ["-cp", os.pathsep.join(map(str, jars))]
        run = [*java, f"-Xmx{self.heap}", f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
        run += ["kafka.Kafka", properties]
        if not to_format:
            return f"exec {shlex.join(run)}"
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", properties]
        return f"{shlex.join(tool)} && exec {shlex.join(run)}"

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while not self._is_there():
            self.refuse_dead()
            if time.monotonic() > deadline:
                raise BrokerStartError(
                    f"the broker did not answer on port {self._running_port} within {READY_WITHIN_S:.0f} s; "
                    f"its last words: {_last_words(self.process.output())}"
                )
            time.sleep(0.05)

    def _is_there(self) -> bool:
        """That a port answers is not enough: it may be somebody else's broker that took it first."""
        if not _answers(self._running_port):
            return False
        from confluent_kafka import KafkaException  # noqa: PLC0415 - heavy, and not needed until here
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - as above

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "reconnect.backoff.ms": 10, "log_level": 2})
        try:
            found = str(admin.list_topics(timeout=ANSWER_WITHIN_S).cluster_id)
        except KafkaException:
            return False
        if found != self.cluster_id:
            raise PortInUseError(
                f"port {self._running_port} was taken by the Kafka cluster {found}: choose another, or 0 for a free one"
            )
        return True


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
        # A transaction whose producer died is over when its time is, and not up to ten seconds later.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    }


def _as_properties(settings: Mapping[str, str]) -> str:
    """Java's properties file, which is Latin-1: what lies beyond ASCII is written as UTF-16 escapes."""
    lines = "".join(f"{key}={value}\n" for key, value in settings.items()).replace("\\", "\\\\")
    return "".join(sign if sign.isascii() else _escaped(sign) for sign in lines)


def _escaped(sign: str) -> str:
    units = sign.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _cluster_id_of(folder: Path) -> str | None:
    """The id under which an earlier start formatted this folder."""
    try:
        lines = (folder / "logs" / "meta.properties").read_text().splitlines()
    except FileNotFoundError:
        return None
    return next((line.partition("=")[2] for line in lines if line.startswith("cluster.id=")), None)


def _former_port(folder: Path) -> int | None:
    """The port of this folder's last broker, where there was one and nobody else has it now."""
    try:
        found = re.search(r"^listeners=PLAINTEXT://127\.0\.0\.1:(\d+)", (folder / PROPERTIES).read_text(), re.MULTILINE)
    except FileNotFoundError:
        return None
    return int(found[1]) if found and _why_taken(int(found[1])) is None else None


def _new_cluster_id() -> str:
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    # One that begins with a dash would be an option to the tool that formats the folder.
    return _new_cluster_id() if cluster_id.startswith("-") else cluster_id


def _last_words(said: str) -> str:
    """The end of a log in one line, without the places in other people's code that a stack trace lists."""
    lines = [line.strip() for line in said.splitlines()]
    telling = [line for line in lines if line and not re.match(r"at \S+\(|\.\.\. \d+ more", line)]
    return " | ".join(telling[-3:]) or "none"


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _why_taken(port: int) -> OSError | None:
    """Nothing if the port is free, else why it cannot be listened on."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error
    return None


def _refuse_taken(port: int) -> None:
    if error := _why_taken(port):
        raise PortInUseError(
            f"port {port} cannot be had ({error.strerror}): choose another, or 0 for a free one"
        ) from error


def _refuse_shared(folder: Path) -> None:
    """The broker that runs on a folder holds a lock in it; to ask first leaves that one's files alone."""
    try:
        with (folder / "logs" / ".lock").open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return
    except BlockingIOError as error:
        raise _data_in_use(folder) from error


def _refuse_full(folder: Path) -> None:
    if shutil.disk_usage(folder).free < ROOM_NEEDED:
        raise _disk_full(folder)


def _data_in_use(folder: Path) -> BrokerStartError:
    return BrokerStartError(f"another broker is running on the data in {folder}: stop it, or name another folder")


def _disk_full(folder: Path) -> DiskFullError:
    return DiskFullError(
        f"no room for a broker's data in {folder} (it wants {ROOM_NEEDED // 2**20} MB): free some, or name another "
        "folder (--data, or TMPDIR for a temporary one)"
    )
