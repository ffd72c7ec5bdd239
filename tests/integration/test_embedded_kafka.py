"""A real broker: ready when it says so, alone on its data, and gone for certain."""

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from headrace.framework.errors import BrokerStartError, DiskFullError, PortInUseError
from headrace.testing import EmbeddedKafka, create_topic, free_port, read_topic, write_topic
from headrace.testing.jars import fetch_jars, read_jar_list
from headrace.testing.kafka import JAR_LIST

STARTER = """
import sys
from headrace.testing import EmbeddedKafka
print("starting", flush=True)
with EmbeddedKafka() as kafka:
    print(kafka.process.pid, flush=True)
    sys.stdin.readline()
"""


def values(messages):
    return [message.value() for message in messages]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder that temporary folders are made in, empty."""
    folder = tmp_path / "temporary files"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture
def command(temporary):
    """Starts `headrace kafka` with options; it is ended at the end of the test."""
    started = []

    def start(*options):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "headrace", "kafka", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
    shutil.rmtree(temporary)


def test_records_come_back(kafka_bootstrap_servers):
    """A topic takes records over all of its partitions and gives each back once, to the test kit and to a group."""
    create_topic(kafka_bootstrap_servers, "come-back", partitions=3)
    sent = sorted(f"{number}".encode() for number in range(1000))
    write_topic(kafka_bootstrap_servers, "come-back", sent)
    assert sorted(values(read_topic(kafka_bootstrap_servers, "come-back"))) == sent
    group = Consumer(
        {
            "bootstrap.servers": kafka_bootstrap_servers,
            "group.id": "come-back",
            "auto.offset.reset": "earliest",
        }
    )
    group.subscribe(["come-back"])
    found = []
    while len(found) < len(sent):
        found += group.consume(len(sent), timeout=1.0)
    group.close()
    assert sorted(values(found)) == sent


def test_an_aborted_transaction_is_not_read(kafka_bootstrap_servers):
    """Readers of committed records do not see it; readers of everything do."""
    create_topic(kafka_bootstrap_servers, "aborted")
    write_topic(kafka_bootstrap_servers, "aborted", [b"first"])
    write_topic(kafka_bootstrap_servers, "aborted", [b"never mind"], commit=False)
    write_topic(kafka_bootstrap_servers, "aborted", [b"last"])
    assert values(read_topic(kafka_bootstrap_servers, "aborted")) == [b"first", b"last"]
    everything = read_topic(kafka_bootstrap_servers, "aborted", isolation="read_uncommitted")
    assert values(everything) == [b"first", b"never mind", b"last"]


def test_topics_that_are_empty_or_not_there(kafka_bootstrap_servers):
    """An empty topic has no records; a topic that is not there is an error that names it."""
    create_topic(kafka_bootstrap_servers, "empty", partitions=2, config={"cleanup.policy": "compact"})
    assert read_topic(kafka_bootstrap_servers, "empty") == []
    with pytest.raises(LookupError, match="no topic not-there"):
        read_topic(kafka_bootstrap_servers, "not-there")


def test_two_at_a_time_are_two(kafka_bootstrap_servers):
    """A second broker starts beside the first, on other ports, with topics of its own; stopped, it is gone."""
    with EmbeddedKafka() as other:
        assert other.bootstrap_servers != kafka_bootstrap_servers
        create_topic(other.bootstrap_servers, "only-here")
        pid, folder = other.process.pid, other.process.log.parent
        admin = AdminClient({"bootstrap.servers": kafka_bootstrap_servers})
        assert "only-here" not in admin.list_topics(timeout=60).topics
    assert not psutil.pid_exists(pid)
    assert not folder.exists()


def test_its_jvm_is_told_more(tmp_path, monkeypatch):
    """What HEADRACE_KAFKA_OPTS holds, quoted as in a shell, is given to the JVMs that format and run the broker."""
    monkeypatch.setenv("HEADRACE_KAFKA_OPTS", "-Xint '-Dfolder=a b'")
    tool, run = EmbeddedKafka()._commands(tmp_path, [], to_format=True).split(" && ")
    for command in (tool, run):
        options = shlex.split(command)
        assert options.index("-Xint") + 1 == options.index("-Dfolder=a b") < options.index("-cp")


def test_named_data_stays(tmp_path):
    """Records in a named folder are there after a stop and after a kill -9, on the same port and cluster id."""
    # The controller refuses a second life of a broker until the session of the killed one is over: 9 s by default.
    quick = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
    kafka = EmbeddedKafka(data=tmp_path / "my data", properties=quick)
    with kafka:
        before = (kafka.cluster_id, kafka.bootstrap_servers)
        create_topic(kafka.bootstrap_servers, "kept")
        write_topic(kafka.bootstrap_servers, "kept", [b"one"])
    with kafka:
        assert (kafka.cluster_id, kafka.bootstrap_servers) == before
        write_topic(kafka.bootstrap_servers, "kept", [b"two"])
        # A broker that dies between its answer to a commit and the commit's marker leaves the transaction hanging,
        # about one time in three. So the marker is waited for.
        read_topic(kafka.bootstrap_servers, "kept")
        kafka.process.kill()
    with kafka:
        assert values(read_topic(kafka.bootstrap_servers, "kept")) == [b"one", b"two"]


def test_one_broker_to_a_folder(tmp_path):
    """A second broker on the same data is refused in one line, and the first goes on."""
    with EmbeddedKafka(data=tmp_path / "data") as kafka:
        with pytest.raises(BrokerStartError, match=r"^another broker is running on the data in .*/data: stop it, or"):
            EmbeddedKafka(data=tmp_path / "data").start()
        create_topic(kafka.bootstrap_servers, "goes-on")
        write_topic(kafka.bootstrap_servers, "goes-on", [b"one"])


def test_a_port_of_somebody_else_is_refused():
    """An occupied port is an error in one line that names it and says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUseError, match=rf"^port {port} .*: choose another, or 0 for a free one$"):
            EmbeddedKafka(port=port).start()


def test_a_port_that_is_lost_on_the_way_is_noticed(temporary):
    """If somebody takes the port after our look the broker's complaint is understood, also when its folder is gone."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        controller = f"127.0.0.1:{free_port()}"
        listeners = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]},CONTROLLER://{controller}"
        kafka = EmbeddedKafka(properties={"listeners": listeners, "controller.quorum.voters": f"1@{controller}"})
        kafka._launch(fetch_jars(read_jar_list(JAR_LIST), name="kafka"))
        with pytest.raises(PortInUseError):
            kafka._await_ready()
        kafka.process.kill()
        with pytest.raises(PortInUseError):
            kafka.refuse_dead()
    assert list(temporary.iterdir()) == []


def test_somebody_elses_broker_is_not_taken_for_ours(kafka_bootstrap_servers):
    """That a Kafka answers on the port is not enough: it has to be the cluster that was started."""
    with EmbeddedKafka() as kafka:
        kafka._running_port = int(kafka_bootstrap_servers.rpartition(":")[2])
        with pytest.raises(PortInUseError, match="was taken by the Kafka cluster"):
            kafka._is_there()


def test_a_broker_that_ends_says_why(temporary):
    """A broker that cannot run is an error in one line with its last words, and its temporary folder is gone."""
    with pytest.raises(BrokerStartError, match="not-a-number") as caught:
        EmbeddedKafka(properties={"node.id": "not-a-number"}).start()
    assert "\n" not in str(caught.value)
    assert list(temporary.iterdir()) == []


def test_a_full_disk_is_refused(temporary, monkeypatch):
    """Without room for its data a broker is not started: one line says where and what to do, and nothing is left."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1024, 1024, 0))
    with pytest.raises(DiskFullError, match=r"^no room for a broker's data in .*: free some, or name another"):
        EmbeddedKafka().start()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("when", ["while it starts", "when it runs"])
def test_kill_9_leaves_nothing_behind(temporary, eventually, when):
    """When the process that started it is killed, the broker ends and its temporary folder goes."""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout.readline() == b"starting\n"
        if when == "when it runs":
            starter.stdout.readline()
        eventually(lambda: guards_of(starter.pid))
        family = psutil.Process(starter.pid).children(recursive=True)
        starter.kill()
        starter.wait()
        psutil.wait_procs(family)
    eventually(lambda: not list(temporary.iterdir()))
    assert [one for one in psutil.process_iter(["cmdline"]) if str(temporary) in str(one.info["cmdline"])] == []


def guards_of(pid):
    """The guard processes below a process."""
    found = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie is one, too
            found += [child for argument in child.cmdline() if argument.endswith("guard.py")]
    return found


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_stops_at_a_signal(command, temporary, number, code):
    """`headrace kafka` says where it listens and runs until a signal, whose exit code it has; nothing is left."""
    process = command("--port", "0")
    bootstrap_servers = process.stdout.readline().strip().removeprefix("bootstrap.servers=")
    create_topic(bootstrap_servers, "works")
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == code
    assert out == ""
    assert "Traceback" not in err
    assert list(temporary.iterdir()) == []


def test_a_signal_counts_while_it_starts_too(command, temporary, eventually):
    """Ctrl-C before the broker is ready ends the command at once, and nothing is left."""
    process = command("--port", "0")
    eventually(lambda: list(temporary.iterdir()))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert list(temporary.iterdir()) == []


def test_the_command_refuses_an_occupied_port(command):
    """An occupied port ends the command with exit code 1 and one line."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = command("--port", str(port))
        out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    said = f"headrace: port {port} cannot be had (Address already in use): choose another, or 0 for a free one"
    assert err.splitlines()[1:] == [said]


def test_the_command_says_why_the_broker_went(command, eventually):
    """A broker that is killed under the command ends it with exit code 1 and one line."""
    process = command("--port", "0")
    process.stdout.readline()
    (guard,) = eventually(lambda: guards_of(process.pid))
    guard.children()[0].kill()
    _, err = process.communicate()
    assert process.returncode == 1
    assert "headrace: the broker ended with exit code 137" in err.splitlines()[-1]


def test_an_existing_broker_is_used(tmp_path):
    """With HEADRACE_TEST_BOOTSTRAP the plugin's fixture gives that broker and starts none."""
    (tmp_path / "test_it.py").write_text(
        "def test_it(kafka_bootstrap_servers):\n    assert kafka_bootstrap_servers == '127.0.0.1:1'\n"
    )
    answer = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"HEADRACE_TEST_BOOTSTRAP": "127.0.0.1:1", "PATH": "", "JAVA_HOME": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout


def test_ready_means_ready():
    """The broker takes its first idempotent produce as soon as it says that it is ready."""
    with EmbeddedKafka() as young:
        failed = []
        producer = Producer({"bootstrap.servers": young.bootstrap_servers, "enable.idempotence": True})
        producer.produce("first", b"first", on_delivery=lambda error, _: failed.append(error))
        assert producer.flush(60) == 0
        assert failed == [None]
        assert values(read_topic(young.bootstrap_servers, "first")) == [b"first"]
