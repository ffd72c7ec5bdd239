"""Redis streams to Kafka, exactly once, beside a bare redis-py XREAD loop into the same transactional producer.

Two partitions of a stream, 200,000 entries of 200 bytes each. The bare loop reads each partition on a thread of its
own and produces what it reads in transactions of the same size: no offsets, no recovery, no look at what was trimmed.
`field` sends one field's bytes, `map` all fields as JSON. The limit is 0.8 of the bare loop. CPU is that of the Python
processes, in seconds for a million records: on a noisy machine it says more than the rate.

    python bench/redis_to_kafka.py [--entries 200000] [--tasks 2] [--rounds 3] [--engines local,spark]
        [--forms field,map]
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parent))  # run with -P, a program does not see its neighbours
from s3_to_kafka import MEGABYTE, PARTITIONS, PER_TRANSACTION, Figures, headrace, sampled

from headrace.testing import EmbeddedKafka, EmbeddedRedis, create_topic

STREAM = "bench"
AT_ONCE = 5000
LIMIT = 0.8
VALUE = orjson.dumps({"amount": 12.25, "ok": True, "name": "someone", "pad": "x" * 140})

Fields = Mapping[bytes, bytes]
FORMS: dict[str, tuple[Mapping[str, str], Callable[[Fields], bytes]]] = {
    "field": (
        {"redis.value.field": "value", "value.converter": "bytes"},
        lambda fields: fields[b"value"],
    ),
    "map": (
        {"value.converter": "json"},
        lambda fields: orjson.dumps({name.decode(): value.decode() for name, value in fields.items()}),
    ),
}


def fill(redis: EmbeddedRedis, streams: int, entries: int) -> None:
    """Put the data there."""
    with redis.client() as client:
        for number in range(streams):
            for first in range(0, entries, AT_ONCE):
                with client.pipeline(transaction=False) as pipeline:
                    for entry in range(first, min(entries, first + AT_ONCE)):
                        pipeline.xadd(f"{STREAM}-{number}", {"id": entry, "value": VALUE})
                    pipeline.execute()


def bare_loop(
    kafka: EmbeddedKafka, redis: EmbeddedRedis, topic: str, streams: int, value_of: Callable[[Fields], bytes]
) -> Figures:
    """What the same work costs without any care."""
    from confluent_kafka import Producer  # noqa: PLC0415 - the peer's, not the benchmark's

    def produce(number: int) -> int:
        stream, last, sent, pending = f"{STREAM}-{number}", b"0", 0, 0
        producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "transactional.id": f"bare-{topic}-{number}",
                "queue.buffering.max.messages": 500_000,
                "linger.ms": 5,
            }
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        with redis.client() as client:
            while answer := client.xread({stream: last}, count=AT_ONCE):
                entries = answer[0][1]
                for _, fields in entries:
                    while True:
                        try:
                            producer.produce(topic, value_of(fields))
                            break
                        except BufferError:
                            producer.poll(0.05)
                last = entries[-1][0]
                sent += len(entries)
                pending += len(entries)
                if pending >= PER_TRANSACTION:
                    producer.commit_transaction(60)
                    producer.begin_transaction()
                    pending = 0
        producer.commit_transaction(60)
        return sent

    with sampled() as sampler:
        started = time.monotonic()
        with ThreadPoolExecutor(streams) as pool:
            sent = sum(pool.map(produce, range(streams)))
        took = time.monotonic() - started
    return Figures(sent / took, sampler.cpu_s / sent * 1e6, sampler.largest / MEGABYTE)


def properties(kafka: EmbeddedKafka, redis: EmbeddedRedis, topic: str, tasks: int) -> dict[str, str]:
    """The configuration of one run, but for the form of its values."""
    return {
        "name": topic,
        "connector.class": "redis",
        "tasks.max": str(tasks),
        "topic": topic,
        "bootstrap.servers": kafka.bootstrap_servers,
        "redis.url": redis.url,
        "redis.streams": STREAM,
        "key.converter": "bytes",
        "batch.max.ms": "600000",
        "transaction.boundary.max.records": str(PER_TRANSACTION),
    }


def main(arguments: Any = None) -> None:
    """Run the rounds, forms and engines in turn, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", default="local,spark")
    parser.add_argument("--forms", default=",".join(FORMS))
    options = parser.parse_args(arguments)
    ratios: dict[str, list[float]] = {}
    prices: dict[str, list[float]] = {}
    with EmbeddedKafka(heap="512m") as kafka, EmbeddedRedis() as redis:
        fill(redis, options.tasks, options.entries)
        for number in range(options.rounds):
            for form in options.forms.split(","):
                props, value_of = FORMS[form]
                topic = f"bench-{form}-{number}"
                create_topic(kafka.bootstrap_servers, topic, partitions=PARTITIONS)
                bare = bare_loop(kafka, redis, topic, options.tasks, value_of)
                print(f"round {number}  {form:6} bare loop  {bare}")
                for engine in options.engines.split(","):
                    wanted = properties(kafka, redis, topic, options.tasks) | props | {"name": f"{topic}-{engine}"}
                    ours = headrace(engine, wanted, options.tasks * options.entries)
                    name = f"{form:6} {engine:9}"
                    ratios.setdefault(name, []).append(ours.records_per_s / bare.records_per_s)
                    prices.setdefault(name, []).append(ours.cpu_s_per_million / bare.cpu_s_per_million)
                    print(f"round {number}  {name}  {ours}  {ratios[name][-1]:.2f} of the bare loop", flush=True)
    for name, found in ratios.items():
        print(
            f"{name}: {statistics.median(found):.2f} of the bare loop's rate, at {statistics.median(prices[name]):.2f} "
            f"of its CPU (medians of {len(found)}); the limit is {LIMIT}"
        )


if __name__ == "__main__":
    main()
