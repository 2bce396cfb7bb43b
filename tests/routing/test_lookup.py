"""Keys are found in a constant number of reads, and no other key is taken for one of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.routing.lookup import NOWHERE, KeyLookup

HASHES = st.integers(0, 2**64 - 1)


@given(st.lists(HASHES, max_size=300, unique=True), st.lists(HASHES, max_size=50))
def test_every_key_has_its_own_place(keys: list[int], others: list[int]) -> None:
    lookup = KeyLookup.of(keys)
    if lookup is None:  # keys that agree in too many bits are searched from end to end
        return
    assert lookup.find(np.array(keys, np.uint64)).tolist() == list(range(len(keys)))
    for place, other in zip(lookup.find(np.array(others, np.uint64)).tolist(), others, strict=True):
        # It may be any key's place: the caller compares. Where it is a key's own, it is that key.
        assert place == NOWHERE or 0 <= place < len(keys)
        if other in keys:
            assert keys[place] == other


def test_keys_that_differ_in_few_bits_only_have_none() -> None:
    keys = [*range(64), *(n << 58 for n in range(1, 64)), *(n << 30 for n in range(1, 64))]
    lookup = KeyLookup.of(keys)
    assert lookup is None or len(set(lookup.find(np.array(keys, np.uint64)))) == len(keys)


def test_a_large_table() -> None:
    keys = np.unique(np.random.default_rng(5).integers(0, 2**64, 5_000, np.uint64))
    lookup = KeyLookup.of(keys.tolist())
    assert lookup is not None
    assert lookup.find(keys).tolist() == list(range(len(keys)))
    assert len(lookup.places) <= 8 * len(keys)


def test_a_key_twice_is_refused() -> None:
    with pytest.raises(SkewlessError, match="each key once"):
        KeyLookup.of([1, 1])
