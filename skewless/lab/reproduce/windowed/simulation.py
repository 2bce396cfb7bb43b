"""Runs a windowed join on a CPU with a budget; `skewless.shedding` decides what it probes."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import ceil

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument
from skewless.lab.reproduce.windowed import kernel, probing
from skewless.lab.reproduce.windowed.streams import Streams
from skewless.planning.checks import check_number
from skewless.shedding.direction import directed
from skewless.shedding.ranking import Productivity, ranked
from skewless.shedding.rate import adapted

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Scheme(Enum):
    """How load is shed; each one but the first adds to the one before it."""

    DROP = "random drop"
    RATE = "rate adaptation"
    TIME = "+ time correlation"
    DIRECTION = "+ join direction"


class Access(Enum):
    """How a tuple finds its matches in a window."""

    SCAN = probing.SCAN
    BY_TIME = probing.BY_TIME
    BY_IDENTIFIER = probing.BY_IDENTIFIER


@dataclass(frozen=True)
class Comparisons:
    """A CPU that makes so many comparisons per second, and nothing else takes time."""

    per_s: float

    def __post_init__(self) -> None:
        check_number("per_s", self.per_s, 0.0)


@dataclass(frozen=True)
class MeasuredTime:
    """This machine, for so much CPU time of the joining thread per second of the stream."""

    s_per_s: float

    def __post_init__(self) -> None:
        check_number("s_per_s", self.s_per_s, 0.0)


@dataclass(frozen=True)
class Join:
    """An overlap join of two windows, with the paper's parameters (§6.1).

    A window of 0 s is not kept: the other stream's tuples look for nothing in it.
    """

    windows_s: tuple[float, float] = (20.0, 20.0)
    threshold: int = 3
    basic_s: float = 1.0  # b
    access: Access = Access.SCAN
    period_s: float = 5.0  # T_r = T_c
    boost: float = 1.2  # δ_r
    sampling: float = 0.1  # γ
    buffer_s: float = 1.0
    keep: float = 0.5  # of what full processing has found before the last period
    filled_s: float = 0.0  # until then windows are filled, and nothing is joined

    def __post_init__(self) -> None:
        if min(self.windows_s) < 0 or max(self.windows_s) <= 0:
            raise bad_argument("windows_s", self.windows_s, "two lengths, one of them above 0")
        for name in ("basic_s", "period_s", "buffer_s"):
            check_number(name, getattr(self, name), 0.0)

    @property
    def basic_windows(self) -> int:
        """n = 1 + ⌈w/b⌉, of the longer window."""
        return 1 + ceil(max(self.windows_s) / self.basic_s)


@dataclass(frozen=True)
class Setting:
    """The fractions from a time on."""

    time_s: float
    fraction: float
    fractions: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Run:
    """What a join did, second by second, and what its adaptations set."""

    matches: Ints
    comparisons: Ints
    fetched: Ints
    dropped: Ints
    course: tuple[Setting, ...]
    learned: tuple[Productivity, Productivity] | None
    pairs: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))

    def output(self, begin_s: float, end_s: float) -> float:
        """Matches per second in a part of the run."""
        return float(self.matches[int(begin_s) : int(end_s)].mean())


def simulate(
    scheme: Scheme,
    streams: Streams,
    join: Join,
    budget: Comparisons | MeasuredTime,
    *,
    room_for_pairs: int = 0,
    clock: Callable[[], float] = time.thread_time,
) -> Run:
    """One run. Under a budget of comparisons equal input gives equal results.

    In a run by measured time the adaptations cost what they take, as probing does. The pairs of
    tuples that match are kept as far as there is room for them.
    """
    tuples = streams.tuples
    has_basic = scheme in (Scheme.TIME, Scheme.DIRECTION)
    per_slot_s = 1 / join.basic_s if has_basic else 0.0
    slot_of = (tuples.time_s * per_slot_s).astype(np.int64)
    slots = int(streams.seconds * per_slot_s) + 1
    kind, windows_s = join.access.value, np.array(join.windows_s)
    settings = kernel.Settings(
        kind,
        join.threshold,
        windows_s,
        per_slot_s,
        join.buffer_s,
        join.sampling,
        float(budget.per_s) if isinstance(budget, Comparisons) else 0.0,
        float(budget.s_per_s) if isinstance(budget, MeasuredTime) else 0.0,
    )
    n = join.basic_windows if has_basic else 0
    buffers, counts = kernel.new_buffers(tuples), kernel.new_counts(ceil(streams.seconds), n)
    windows = probing.new_windows(tuples, streams.items, slots)
    lists = probing.new_lists(tuples, streams.items, slots, slot_of, kind)
    pairs = probing.new_pairs(room_for_pairs)
    kernel.fill(tuples, buffers, windows, lists, settings, join.filled_s)

    steering = _Steering(scheme, join, n)
    course = [steering.setting(0.0)]
    now, until_s = join.filled_s, join.filled_s
    fetched, arrived = 0, int(buffers.arrived.sum())
    while until_s < streams.seconds:
        until_s = min(until_s + join.period_s, streams.seconds)
        now = kernel.run_until(
            tuples, buffers, windows, lists, pairs, counts, settings, steering.knobs(), now, until_s
        )
        was = fetched, arrived
        fetched, arrived = int(counts.fetched.sum()), int(buffers.arrived.sum())
        began = clock()
        steering.adapt(fetched - was[0], arrived - was[1], counts)
        if isinstance(budget, MeasuredTime):
            now += (clock() - began) / budget.s_per_s
        course.append(steering.setting(until_s))
    found = int(pairs.found[0])
    return Run(
        counts.matches,
        counts.comparisons,
        counts.fetched,
        counts.dropped,
        tuple(course),
        steering.learned,
        np.stack([pairs.first[:found], pairs.second[:found]], axis=1),
    )


class _Steering:
    """The adaptations that a scheme makes at the end of every period."""

    def __init__(self, scheme: Scheme, join: Join, basic_windows: int) -> None:
        self.scheme = scheme
        self.join = join
        self.fraction = 1.0
        self.fractions = (1.0, 1.0)
        self.learned: tuple[Productivity, Productivity] | None = None
        self.order = np.empty((2, 0), np.int64)
        if basic_windows:
            none = Productivity.none(basic_windows)
            self.learned = (none, none)
            self.order = np.stack([ranked(none), ranked(none)])

    def adapt(self, fetched: int, arrived: int, counts: kernel.Counts) -> None:
        if self.scheme is Scheme.DROP:
            return
        self.fraction = adapted(self.fraction, fetched, arrived, self.join.boost)
        self.fractions = (self.fraction, self.fraction)
        if self.learned is None:
            return
        first, second = (
            before.fade(self.join.keep).merge(Productivity(compared.copy(), matched.copy()))
            for before, compared, matched in zip(
                self.learned, counts.compared, counts.matched, strict=True
            )
        )
        self.learned = (first, second)
        counts.compared[:] = 0.0
        counts.matched[:] = 0.0
        self.order = np.stack([ranked(first), ranked(second)])
        if self.scheme is Scheme.DIRECTION:
            yields = (first.mean, second.mean)
            self.fractions = directed(self.fraction, self.join.windows_s, yields)

    def knobs(self) -> kernel.Knobs:
        return kernel.Knobs(self.fraction, np.array(self.fractions), self.order)

    def setting(self, time_s: float) -> Setting:
        return Setting(time_s, self.fraction, self.fractions)
