"""HyperLogLog: how many different values a group has seen, in at most two kilobytes.

A sketch is the list of its registers that are not empty, so a small group stays small. The
estimator is Ertl's (New cardinality estimation algorithms for HyperLogLog sketches, 2017,
algorithm 6): no table of corrections, and nearly no bias at any size.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from skewless.errors import bad_argument
from skewless.kernels.groups import without_negative_zero
from skewless.kernels.ordering import HashArray, IndexArray

# 2^10 registers: a standard error of 1.04/√1024.
INDEX_BITS = 10
REGISTERS = 2**INDEX_BITS
STANDARD_ERROR = 1.04 / REGISTERS**0.5
# The rank of a value is the place of its first one-bit among these; exact in a float64.
RANK_BITS = 53
_RANK_WIDTH = 6
Entries = npt.NDArray[np.uint16]


def entries_of(hashes: HashArray) -> Entries:
    """The register and rank of every hash: 10 and 6 bits."""
    register = hashes >> np.uint64(64 - INDEX_BITS)
    rest = (hashes << np.uint64(INDEX_BITS)) >> np.uint64(64 - RANK_BITS)
    # frexp's exponent is the number of bits of a whole number.
    length = np.frexp(rest.astype(np.float64))[1]
    rank = (RANK_BITS + 1 - length).astype(np.uint64)
    return ((register << np.uint64(_RANK_WIDTH)) | rank).astype(np.uint16)


def highest(ids: IndexArray, entries: Entries) -> tuple[IndexArray, Entries]:
    """The highest rank of every register of every group, sorted by group and register."""
    combined = np.sort((ids << 16) | entries.astype(np.int64))
    last = np.ones(len(combined), np.bool_)
    register = combined >> _RANK_WIDTH
    np.not_equal(register[1:], register[:-1], out=last[:-1])
    kept = combined[last]
    return kept >> 16, (kept & 0xFFFF).astype(np.uint16)


def estimates(ids: IndexArray, entries: Entries, groups: int) -> npt.NDArray[np.int64]:
    """How many different values each group has seen, from what `highest` gives."""
    ranks = (entries & (2**_RANK_WIDTH - 1)).astype(np.int64)
    width = RANK_BITS + 2
    counts = np.bincount(ids * width + ranks, minlength=groups * width).reshape(groups, width)
    counts[:, 0] = REGISTERS - counts.sum(axis=1)
    z = REGISTERS * _tau(1 - counts[:, -1] / REGISTERS)
    for rank in range(RANK_BITS, 0, -1):
        z = 0.5 * (z + counts[:, rank])
    z = z + REGISTERS * _sigma(counts[:, 0] / REGISTERS)
    with np.errstate(divide="ignore"):
        found = REGISTERS**2 / (2 * np.log(2) * z)
    return np.rint(found).astype(np.int64)


def _sigma(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """x + Σ x^(2^k) 2^(k−1); infinite for a sketch without any value."""
    power, weight, total = x.copy(), 1.0, x.copy()
    # x ≤ 1 − 2^−10 otherwise, whose 2^17th power is far below the last bit.
    for _ in range(18):
        power = power * power
        total = total + power * weight
        weight *= 2
    return np.where(x == 1.0, np.inf, total)


def _tau(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(1 − x − Σ (1 − x^(2^−k))² 2^−k) / 3; zero at both ends."""
    root, weight, total = x.copy(), 1.0, 1 - x
    for _ in range(60):
        root = np.sqrt(root)
        weight *= 0.5
        total = total - (1 - root) ** 2 * weight
    return np.where((x == 0.0) | (x == 1.0), 0.0, total / 3)


def hash_values(values: pa.Array) -> HashArray:
    """A 64-bit hash of every value, none null; the same for ever, because sketches are stored."""
    kind = values.type
    if pa.types.is_floating(kind):
        numbers = without_negative_zero(values).to_numpy(zero_copy_only=False)
        numbers = np.where(np.isnan(numbers), np.nan, numbers.astype(np.float64))
        return _mixed(numbers.view(np.uint64))
    if is_text(kind):
        bytes_of = values.cast(pa.large_binary())
        _, offsets, content = bytes_of.buffers()
        at = np.frombuffer(offsets, np.int64)[bytes_of.offset :][: len(values) + 1]
        data = np.frombuffer(b"" if content is None else content, np.uint8)
        return _mixed(_hash_bytes(at, data))
    if pa.types.is_decimal128(kind):
        words = np.frombuffer(values.buffers()[1], np.uint64).reshape(-1, 2)
        words = words[values.offset :][: len(values)]
        return _mixed(_mixed(words[:, 0]) ^ words[:, 1])
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return _mixed(values.cast(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64))
    if pa.types.is_temporal(kind):
        view = pa.int32() if kind.bit_width == 32 else pa.int64()
        return hash_values(values.view(view))
    raise bad_argument("process", str(kind), "plain columns for approx_count_distinct")


def is_text(kind: pa.DataType) -> bool:
    return any(
        is_kind(kind)
        for is_kind in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )


def list_groups(lists: pa.Array, ids: IndexArray) -> IndexArray:
    """The group of every element of lists, of which `ids` says the group."""
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return np.repeat(ids, lengths)


def _mixed(values: npt.NDArray[np.uint64]) -> HashArray:
    """The finaliser of SplitMix64: a bijection whose every output bit hangs on every input bit."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def _hash_bytes(offsets, data):  # type: ignore[no-untyped-def]
    """FNV-1a; `_mixed` spreads its weak upper bits."""
    out = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(out)):
        state = np.uint64(0xCBF29CE484222325)
        for j in range(offsets[i], offsets[i + 1]):
            state = (state ^ np.uint64(data[j])) * np.uint64(0x100000001B3)
        out[i] = state
    return out
