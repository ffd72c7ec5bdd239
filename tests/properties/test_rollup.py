from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.offsets.rollup import RolledUp, decode_shard, encode_shard

WITHIN = st.integers(0, (1 << 38) - 1)
VERSIONS = st.integers(0, (1 << 28) - 1)
SHARD = st.integers(0, 1023)
# Few names, so that they meet again.
NAMES = st.builds(lambda shard, within: (shard << 38) | within, st.integers(0, 3), st.one_of(st.integers(0, 9), WITHIN))
STEPS = st.lists(
    st.tuples(st.dictionaries(NAMES, VERSIONS, max_size=8), st.none() | st.sets(NAMES, max_size=8)), max_size=8
)


@given(shard=SHARD, marks=st.dictionaries(WITHIN, VERSIONS, max_size=60))
def test_what_goes_into_a_shard_comes_out_of_it(shard, marks):
    """Every set of marks comes back as it was, also the first, the last and neighbours."""
    whole = sorted(((shard << 38) | within, version) for within, version in marks.items())
    names, versions = decode_shard(shard, encode_shard(whole))
    assert list(zip(names, versions, strict=True)) == whole


@given(steps=STEPS)
@settings(max_examples=200)
def test_a_roll_up_is_a_map_whatever_is_added_and_dropped(steps):
    """After any additions and departures it holds what a dictionary would hold."""
    known, model = RolledUp(), {}
    for added, gone in steps:
        keep = None if gone is None else (lambda name, gone=gone: name not in gone)
        for shard, value in known.changed(added.items(), keep=keep).items():
            known.take(shard, value)
        model = {name: version for name, version in model.items() if keep is None or keep(name)} | added
        assert list(known) == sorted(model.items())
        assert len(known) == len(model)
