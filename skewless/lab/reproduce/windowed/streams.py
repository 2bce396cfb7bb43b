"""Two streams of sets as one list of tuples in the order of their arrival."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skewless.lab.workloads.rotating import Floats, Ints, Items, ItemSets, Rotating, even_arrivals

Sides = npt.NDArray[np.int8]

# Tuples per second and for how many seconds (Fig. 3 and 6); how long the end is, is ours.
PHASES = ((100.0, 60.0), (500.0, 15.0), (300.0, 30.0), (100.0, 25.0))
CYCLES_PER_WINDOW = 2.0
LAG = 5 / 8  # of a cycle


class Tuples(NamedTuple):
    """Both streams as the compiled loops read them; items are numbered from 0."""

    time_s: Floats
    side: Sides
    first: Ints
    items: Items
    of_side: Ints  # [side, number]: its tuples in order; the shorter side is filled up with -1
    sample: Floats  # uniform in [0, 1): whether the tuple is processed in full
    victim: Floats  # uniform in [0, 1): who goes when its arrival overflows a buffer
    identifier: Ints  # uniform in [0, 2^31): where it stands in lists sorted by identifier


@dataclass(frozen=True, eq=False)
class Streams:
    """The input of a join, with the number of different items."""

    tuples: Tuples
    items: int
    seconds: float

    @staticmethod
    def merged(
        times: tuple[Floats, Floats],
        sets: tuple[ItemSets, ItemSets],
        rng: np.random.Generator,
        *,
        items: int,
        seconds: float,
    ) -> "Streams":
        """The tuples of both streams by time; of equal times the first stream's come first."""
        side = np.repeat(np.array([0, 1], np.int8), [len(t) for t in times])
        time_s = np.concatenate(times)
        order = np.lexsort((side, time_s))
        sizes = np.concatenate([np.diff(s.first) for s in sets])
        begin = np.concatenate([sets[0].first[:-1], sets[0].first[-1] + sets[1].first[:-1]])
        both = np.concatenate([s.items for s in sets])
        first = np.concatenate([[0], np.cumsum(sizes[order])])
        within = np.arange(first[-1]) - np.repeat(first[:-1], sizes[order])
        place = np.repeat(begin[order], sizes[order]) + within
        n = len(order)
        of_side = np.full((2, max(len(t) for t in times)), -1)
        for s in (0, 1):
            of_side[s, : len(times[s])] = np.flatnonzero(side[order] == s)
        tuples = Tuples(
            time_s[order],
            side[order],
            first,
            both[place] - np.int32(1),
            of_side,
            rng.random(n),
            rng.random(n),
            rng.integers(0, 2**31, n),
        )
        return Streams(tuples, items, seconds)

    @staticmethod
    def rotating(
        workload: Rotating,
        phases: tuple[tuple[float, float], ...],
        rng: np.random.Generator,
        *,
        lag_s: float = 0.0,
    ) -> "Streams":
        """Two streams of one workload at even distances; the second lags behind the first."""
        # The second stream's tuples come in the middle between two of the first.
        times = even_arrivals(phases), even_arrivals(phases, shift=0.5)
        sets = workload.draw(times[0], rng), workload.draw(times[1], rng, lag_s=lag_s)
        seconds = sum(seconds for _, seconds in phases)
        return Streams.merged(times, sets, rng, items=workload.items, seconds=seconds)


def paper_streams(
    seed: int,
    *,
    exponent: float,
    window_s: float,
    lag: float,
    phases: tuple[tuple[float, float], ...] = PHASES,
    single_values: bool = False,
) -> Streams:
    """The paper's workload: χ = 2w, and the second stream lags by a part of χ."""
    cycle_s = CYCLES_PER_WINDOW * window_s
    workload = Rotating.values(exponent, cycle_s) if single_values else Rotating(exponent, cycle_s)
    rng = np.random.default_rng([seed, 53])
    return Streams.rotating(workload, phases, rng, lag_s=lag * cycle_s)
