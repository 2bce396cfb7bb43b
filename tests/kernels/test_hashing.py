"""The hash in numpy is Spark's, bit for bit (tests/runtime/test_hashing.py asks Spark)."""

import numpy as np
import pytest

from skewless.kernels.hashing import xxhash64

# From Spark: select xxhash64(k).
KNOWN = {
    0: -5252525462095825812,
    1: -7001672635703045582,
    -1: 3858142552250413010,
    42: -6876166290308861218,
    2**63 - 1: -3246596055638297850,
    -(2**63): -8619748838626508300,
    123456789012345: 755925937788029102,
}


@pytest.mark.parametrize(("key", "expected"), KNOWN.items())
def test_known_values(key: int, expected: int) -> None:
    assert xxhash64(np.array([key], np.int64)).view(np.int64).tolist() == [expected]


def test_smaller_numbers_are_hashed_as_four_bytes() -> None:
    # From Spark: select xxhash64(cast(k as int)), and the same of a smallint and a tinyint.
    expected = [3614696996920510707, -6698625589789238999, 9201179564109417620]
    for kind in (np.int32, np.int16, np.int8):
        hashes = xxhash64(np.array([0, 1, -5], kind))
        assert hashes.view(np.int64).tolist() == expected
