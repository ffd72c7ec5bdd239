"""Wherever its connections break, an object comes out whole, and is fetched once."""

import random
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.framework.backoff import BackoffConfig
from headrace.sources.s3.attempts import Attempts
from headrace.sources.s3.client import Connection, make_client
from headrace.sources.s3.listing import find_object
from headrace.sources.s3.stream import ObjectStream
from headrace.testing.faulty_s3 import CutBody, FaultyS3

SIZE = 200_000
CONTENT = random.Random(31_337).randbytes(SIZE)  # noqa: S311 - any bytes do

cuts = st.lists(st.builds(CutBody, st.integers(0, SIZE), reset=st.booleans()), max_size=8)


@pytest.fixture(scope="module")
def served(s3_endpoint):
    """An object, a client, and the proxy between the two."""
    with FaultyS3(s3_endpoint) as faulty:
        client = make_client(
            Connection(endpoint=faulty.endpoint, access_key_id="key", secret_access_key="secret")  # noqa: S106
        )
        bucket = f"bucket-{uuid.uuid4()}"
        client.create_bucket(Bucket=bucket)
        client.put_object(Bucket=bucket, Key="object", Body=CONTENT)
        yield find_object(client, bucket, "object", Attempts()), client, faulty
        client.close()


@given(cuts=cuts, start=st.integers(0, SIZE), size=st.integers(5_000, SIZE * 2))
@settings(deadline=None, max_examples=60)
def test_a_body_cut_at_random_bytes_comes_out_whole_and_once(served, cuts, start, size):
    """Whatever is cut and where reading began: the bytes are the object's, and at most 5 % of it is fetched twice."""
    found, client, faulty = served
    faulty.requests.clear()
    faulty.script(*cuts)
    # One more: a kept connection may turn out to be dead that an earlier example had cut.
    attempts = Attempts(retries=len(cuts) + 1, config=BackoffConfig(first_s=0.0001, longest_s=0.001))
    with ObjectStream(client=client, object=found, attempts=attempts, start=start) as stream:
        content = b"".join(iter(lambda: stream.read(size), b""))
    faulty.forget()
    assert content == CONTENT[start:]
    assert stream.fetched <= SIZE - start + 0.05 * SIZE
    if not any(cut.reset for cut in cuts):  # what a reset throws away in the kernel was sent, and never received
        assert sum(get.sent for get in faulty.gets) <= SIZE - start + 0.05 * SIZE
