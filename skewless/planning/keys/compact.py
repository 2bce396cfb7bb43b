"""Compact statistics (§IV-A): keys alike in instance, home, cost and state become one record."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.planning.keys.hlhe import discretise
from skewless.planning.keys.llfd import Packing
from skewless.planning.keys.snapshot import GONE, Instances, KeySnapshot
from skewless.planning.keys.units import Units

Records = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Compact:
    """The records as units, and the record that every key is part of.

    A unit is the paper's tuple (d, d_h, v_c, v_S, #); the next instance d′ is what planning adds.
    """

    units: Units
    record: Records

    def expand(self, packing: Packing, snapshot: KeySnapshot) -> Instances:
        """Where every key is. Of a record whose keys part, each goes where it does least harm:
        they are alike to the planner, and yet not quite."""
        order = np.argsort(packing.unit, kind="stable")
        ends = np.cumsum(np.bincount(packing.unit, minlength=len(self.units.cost)))
        starts = np.concatenate([[0], ends[:-1]])
        placed: Instances = _expanded(
            self.record, snapshot.cost, self.units.cost, self.units.count, packing.placed,
            starts, ends, packing.target[order], snapshot.instances,
        )  # fmt: skip
        return placed

    def load_error(self, packing: Packing, snapshot: KeySnapshot) -> float:
        """The largest share by which a packing misjudges the load that an instance then has."""
        true = snapshot.loads_of(self.expand(packing, snapshot))
        off = np.abs(packing.loads(self.units) - true)
        return float(np.divide(off, true, out=np.zeros_like(true), where=true > 0).max())


@njit(cache=True, nogil=True)
def _expanded(record, true, judged, count, placed, starts, ends, target, instances):  # type: ignore[no-untyped-def]
    out = np.empty(len(record), np.int64)
    left = count.copy()
    # How much more than planned an instance has lost, or got.
    lost = np.zeros(instances, np.float64)
    got = np.zeros(instances, np.float64)
    for key in range(len(record)):
        r = record[key]
        source = placed[r]
        going = ends[r] - starts[r]
        out[key] = source
        if going > 0:
            to = target[starts[r]]
            off = true[key] - judged[r]
            harm = abs(lost[source] + off) + abs(got[to] + off)
            if going == left[r] or harm <= abs(lost[source]) + abs(got[to]):
                out[key] = to
                lost[source] += off
                got[to] += off
                starts[r] += 1
        left[r] -= 1
    return out


@njit(cache=True, nogil=True)
def _grouped(cost, state, home, current, slots):  # type: ignore[no-untyped-def]
    """The record of every key, and a key of every record; a hash table with open addressing."""
    n = len(cost)
    mask = np.uint64(slots - 1)
    table = np.full(slots, -1, np.int32)
    record = np.empty(n, np.int64)
    example = np.empty(n, np.int64)
    records = 0
    for key in range(n):
        mixed = np.uint64(cost[key]) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ np.uint64(state[key])) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ np.uint64(home[key])) * np.uint64(0x94D049BB133111EB)
        mixed = (mixed ^ np.uint64(current[key] + 1)) * np.uint64(0x9E3779B97F4A7C15)
        slot = (mixed >> np.uint64(32)) & mask
        while True:
            r = table[slot]
            if r < 0:
                table[slot] = records
                example[records] = key
                record[key] = records
                records += 1
                break
            e = example[r]
            if (
                cost[e] == cost[key]
                and state[e] == state[key]
                and home[e] == home[key]
                and current[e] == current[key]
            ):
                record[key] = r
                break
            slot = (slot + np.uint64(1)) & mask
    return record, example[:records].copy()


def compact(snapshot: KeySnapshot, degree: int) -> Compact:
    """The snapshot's keys as records, with cost and state discretised by degree R.

    The running error is kept per instance: it is an instance's load that has to come out right.

    >>> from skewless.planning.keys.snapshot import KeySnapshot
    >>> cost, zeros = np.array([4.0, 1, 1, 1]), np.zeros(4, np.int64)
    >>> hashes = np.arange(4, dtype=np.uint64)
    >>> few = compact(KeySnapshot(hashes, cost, cost, zeros, zeros, np.zeros(2)), degree=4)
    >>> few.units.cost.tolist(), few.units.count.tolist()
    ([4.0, 1.0], [1, 3])
    """
    cost = discretise(snapshot.cost, degree, snapshot.standing).codes
    state = discretise(snapshot.state, degree, snapshot.standing).codes
    slots = 1 << max(4, (2 * snapshot.keys).bit_length())
    record, example = _grouped(cost, state, snapshot.home, snapshot.current, slots)
    home, current = snapshot.home[example], snapshot.current[example]
    count = np.bincount(record, minlength=len(example))
    # The mean of a record's keys, not the representative they were rounded to: a planner picks what
    # seems to cost much, and would pick what was rounded up.
    units = Units(
        cost=np.bincount(record, snapshot.cost, len(example)) / count,
        state=np.bincount(record, snapshot.state, len(example)) / count,
        home=home,
        current=current,
        standing=np.where(current == GONE, home, current),
        count=count,
        rest=snapshot.rest,
    )
    return Compact(units, record)
