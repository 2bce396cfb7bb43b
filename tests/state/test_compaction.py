"""Compaction over simulated batches: few live segments, nothing lost or merged twice."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.state.compaction import (
    BASIC_WINDOWS,
    FANOUT,
    MAX_BYTES,
    MAX_LIVE,
    WORTHWHILE,
    Merge,
    choose_merges,
    expired,
)
from skewless.state.segment import Segment

from .examples import segment

Times = npt.NDArray[np.int64]
Group = tuple[str, int]
SECOND = 1_000_000


def by_group(segments: Iterable[Segment]) -> dict[Group, list[Segment]]:
    groups: dict[Group, list[Segment]] = defaultdict(list)
    for s in segments:
        groups[s.side, s.instance].append(s)
    return groups


@dataclass
class Simulation:
    """The state of one join without its files: segments as plain lists of times."""

    window_us: int | None
    row_bytes: int = 100
    keep_from_us: dict[str, int | None] = field(
        default_factory=lambda: {"left": None, "right": None}
    )
    rows: dict[str, Times] = field(default_factory=dict)
    live: list[Segment] = field(default_factory=list)
    rewritten: int = 0
    _batch: int = 0

    def batch(self, arrivals: Mapping[Group, Sequence[Times]], keep_from_us: int | None) -> None:
        """One batch: the merges of the state before it, its new segments, then expiry."""
        merges = choose_merges(self.live, self.keep_from_us, self.window_us)
        self.check(merges)
        for merge in merges:
            self.enact(merge)
        for (side, instance), parts in arrivals.items():
            for part, times in enumerate(parts):
                self.add(f"b{self._batch:05d}-i{instance}-{side}-{part}", side, instance, times)
        self._batch += 1
        if keep_from_us is not None:
            self.keep_from_us = dict.fromkeys(self.keep_from_us, keep_from_us)
        self.live = [s for s in self.live if not expired(s, self.keep_from_us)]

    def check(self, merges: list[Merge]) -> None:
        groups = by_group(self.live)
        assert len({(m.side, m.instance) for m in merges}) == len(merges)
        for merge in merges:
            group = sorted(
                groups[merge.side, merge.instance], key=lambda s: (s.first_batch, s.name)
            )
            places = [group.index(s) for s in merge.segments]
            assert places == list(range(places[0], places[0] + len(places))), "not neighbours"
            assert len(places) == 1 or WORTHWHILE <= len(places) <= FANOUT
            if len(places) > 1:
                assert sum(s.bytes for s in merge.segments) <= MAX_BYTES

    def enact(self, merge: Merge) -> None:
        before = [self.rows.pop(s.name) for s in merge.segments]
        keep = self.keep_from_us[merge.side]
        times = np.concatenate(before)
        times = times if keep is None else times[times >= keep]
        gone = {s.name for s in merge.segments}
        self.live = [s for s in self.live if s.name not in gone]
        self.rewritten += len(times)
        if len(times):
            first, last = merge.segments[0], merge.segments[-1]
            self.add(
                f"{first.name}+{self._batch}",
                merge.side,
                merge.instance,
                times,
                level=1 + max(s.level for s in merge.segments),
                first_batch=first.first_batch,
                last_batch=last.last_batch,
            )

    def add(self, name: str, side: str, instance: int, times: Times, **fields: int) -> None:
        assert name not in self.rows
        self.rows[name] = times
        bulk = int(0.9 * (len(times) - 1))
        values: dict[str, int] = {"first_batch": self._batch, "last_batch": self._batch, **fields}
        self.live.append(
            segment(
                name,
                side=side,
                instance=instance,
                rows=len(times),
                bytes=self.row_bytes * len(times),
                min_time_us=int(times.min()),
                max_time_us=int(times.max()),
                bulk_time_us=int(np.partition(times, bulk)[bulk]),
                **values,
            )
        )

    def widest_group(self) -> int:
        return max((len(g) for g in by_group(self.live).values()), default=0)

    def held(self) -> list[int]:
        return sorted(t for s in self.live for t in self.rows[s.name].tolist())


Arrive = Callable[[int, np.random.Generator], Times]


def in_order(batch: int, rng: np.random.Generator) -> Times:
    return batch * SECOND + rng.integers(0, SECOND, 20)


def out_of_order(batch: int, rng: np.random.Generator) -> Times:
    return batch * SECOND - rng.integers(0, 30 * SECOND, 20)


def tiny(batch: int, rng: np.random.Generator) -> Times:
    return batch * SECOND + rng.integers(0, SECOND, 1)


def bursts(batch: int, rng: np.random.Generator) -> Times:
    """Now and then a batch a hundred times as long as the others."""
    return batch * SECOND + rng.integers(0, SECOND, 1_000 if batch % 10 == 0 else 10)


def with_strays(batch: int, rng: np.random.Generator) -> Times:
    """In every batch one row of a clock that is a year ahead."""
    return np.append(in_order(batch, rng), (365 * 86_400 + batch) * SECOND)


def with_rare_strays(batch: int, rng: np.random.Generator) -> Times:
    return with_strays(batch, rng) if batch % 5 == 0 else in_order(batch, rng)


def all_stray(batch: int, rng: np.random.Generator) -> Times:
    return in_order(batch, rng) + 365 * 86_400 * SECOND


ARRIVALS: list[Arrive] = [
    in_order,
    out_of_order,
    tiny,
    bursts,
    with_strays,
    with_rare_strays,
    all_stray,
]


@pytest.mark.parametrize("arrive", ARRIVALS, ids=lambda a: a.__name__)
@pytest.mark.parametrize("window_s", [0, 1, 3, 10, 40, 150, 10_000, None])
def test_few_segments_are_live_and_no_row_is_lost(arrive: Arrive, window_s: int | None) -> None:
    rng = np.random.default_rng(5)
    window_us = None if window_s is None else window_s * SECOND
    simulation = Simulation(window_us)
    came: Counter[int] = Counter()
    keep_from: int | None = None
    for batch in range(250):
        times = arrive(batch, rng)
        came.update(times.tolist())
        if window_us is not None:
            keep_from = batch * SECOND - window_us
        simulation.batch({("left", 0): [times]}, keep_from)
        # A merge is due past MAX_LIVE, and until then one batch has added one segment.
        assert simulation.widest_group() <= MAX_LIVE + 1
    held = simulation.held()
    needed = sorted(t for t in came.elements() if keep_from is None or t >= keep_from)
    surplus = Counter(held) - Counter(needed)
    assert Counter(needed) - Counter(held) == Counter()
    assert all(keep_from is not None and t < keep_from for t in surplus)


@pytest.mark.parametrize("window_s", [3, 20, 150])
@pytest.mark.parametrize("arrive", [in_order, bursts], ids=lambda a: a.__name__)
def test_rows_outlive_their_window_by_a_basic_window_at_most(arrive: Arrive, window_s: int) -> None:
    rng = np.random.default_rng(6)
    simulation = Simulation(window_s * SECOND)
    for batch in range(300):
        keep_from = (batch - window_s) * SECOND
        simulation.batch({("left", 0): [arrive(batch, rng)]}, keep_from)
        oldest = min(s.min_time_us for s in simulation.live)
        assert oldest >= keep_from - window_s * SECOND // BASIC_WINDOWS - SECOND


@pytest.mark.parametrize("window_s", [3, 20, 150])
@pytest.mark.parametrize("arrive", [with_strays, with_rare_strays], ids=lambda a: a.__name__)
def test_strays_do_not_keep_the_rows_beside_them(arrive: Arrive, window_s: int) -> None:
    rng = np.random.default_rng(6)
    simulation = Simulation(window_s * SECOND)
    for batch in range(400):
        keep_from = (batch - window_s) * SECOND
        simulation.batch({("left", 0): [arrive(batch, rng)]}, keep_from)
        held = np.concatenate([simulation.rows[s.name] for s in simulation.live])
        assert len(held) <= 2 * (held >= keep_from).sum()


def test_a_row_is_rewritten_about_once_per_level() -> None:
    rng = np.random.default_rng(7)
    simulation = Simulation(window_us=None)
    batches = 600
    for batch in range(batches):
        simulation.batch({("left", 0): [in_order(batch, rng)]}, None)
    levels = int(np.ceil(np.log(batches) / np.log(FANOUT)))
    assert simulation.rewritten <= levels * 20 * batches


@settings(max_examples=15)
@given(data=st.data(), window_s=st.none() | st.integers(0, 60), parts=st.integers(1, 3))
def test_any_stream_on_several_sides_and_instances(
    data: st.DataObject, window_s: int | None, parts: int
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    kinds = data.draw(st.lists(st.sampled_from(ARRIVALS), min_size=4, max_size=4))
    groups: list[Group] = [("left", 0), ("left", 1), ("right", 0), ("right", 1)]
    window_us = None if window_s is None else window_s * SECOND
    simulation = Simulation(window_us)
    for batch in range(data.draw(st.integers(40, 80))):
        busy = {g: kind for g, kind in zip(groups, kinds, strict=True) if rng.random() < 0.8}
        arrivals = {g: [kind(batch, rng) for _ in range(parts)] for g, kind in busy.items()}
        simulation.batch(arrivals, None if window_us is None else batch * SECOND - window_us)
        assert simulation.widest_group() <= MAX_LIVE + parts


@pytest.mark.parametrize("row_bytes", [2**20, 4 * 2**20, 40 * 2**20])
def test_large_segments_are_left_alone(row_bytes: int) -> None:
    rng = np.random.default_rng(8)
    simulation = Simulation(window_us=None, row_bytes=row_bytes)
    for batch in range(300):
        arrive = tiny if batch % FANOUT else in_order  # a large one between small ones
        simulation.batch({("left", 0): [arrive(batch, rng)]}, None)
    total = sum(s.bytes for s in simulation.live)
    # Past MAX_LIVE any FANOUT neighbours are together heavier than the cap, and each segment is
    # in FANOUT such runs at most.
    assert simulation.widest_group() <= MAX_LIVE + FANOUT * (total / MAX_BYTES + 1)
    largest_new = 20 * row_bytes
    assert all(s.bytes <= max(MAX_BYTES, largest_new) for s in simulation.live)
    assert len(simulation.held()) == sum(tiny_or_not(b) for b in range(300))


def tiny_or_not(batch: int) -> int:
    return 1 if batch % FANOUT else 20


def spanning(*spans: tuple[int, int], **fields: int) -> list[Segment]:
    """Segments of one group, one per batch, each with its (oldest, newest) time."""
    return [
        segment(f"s{i:02d}", first_batch=i, min_time_us=a, max_time_us=b, bulk_time_us=b, **fields)
        for i, (a, b) in enumerate(spans)
    ]


def names(merges: list[Merge]) -> list[list[str]]:
    return [[s.name for s in m.segments] for m in merges]


def test_levels_wait_for_their_full_number_while_more_can_come() -> None:
    old = [segment(f"a{i}", level=1, first_batch=i) for i in range(FANOUT - 1)]
    new = [segment(f"b{i}", first_batch=FANOUT + i) for i in range(3)]
    assert names(choose_merges([*old, *new], FOREVER, None)) == []
    # Before a higher level nothing can be put in between any more.
    higher = segment("c", level=2, first_batch=99)
    assert names(choose_merges([*new, higher], FOREVER, None)) == []
    four = [segment(f"b{i}", first_batch=i) for i in range(WORTHWHILE)]
    assert names(choose_merges([*four, higher], FOREVER, None)) == [[s.name for s in four]]


FOREVER: dict[str, int | None] = {"left": None, "right": None}
EIGHT = [f"s{i:02d}" for i in range(FANOUT)]


@pytest.mark.parametrize(
    ("segments", "window_us", "chosen"),
    [
        ([], 800, []),
        (spanning(*[(i, i) for i in range(FANOUT - 1)]), 800, []),
        (spanning(*[(i, i) for i in range(FANOUT)]), 800, [EIGHT]),
        # Spread over more than a basic window of 100: those inside it, if they are worth it.
        (spanning(*[(15 * i, 15 * i) for i in range(FANOUT)]), 800, [EIGHT[:7]]),
        (spanning(*[(26 * i, 26 * i) for i in range(FANOUT)]), 800, [EIGHT[:4]]),
        (spanning(*[(34 * i, 34 * i) for i in range(FANOUT)]), 800, []),
        (spanning(*[(15 * i, 15 * i) for i in range(FANOUT)]), None, [EIGHT]),
        # Each is longer than a basic window, but they overlap: merging widens nothing.
        (spanning(*[(10 * i, 10 * i + 300) for i in range(FANOUT)]), 800, [EIGHT]),
        # Too heavy together.
        (spanning(*[(i, i) for i in range(FANOUT)], bytes=MAX_BYTES // 3), 800, []),
        (spanning(*[(i, i) for i in range(FANOUT)], bytes=MAX_BYTES // FANOUT), 800, [EIGHT]),
    ],
)
def test_cases(segments: list[Segment], window_us: int | None, chosen: list[list[str]]) -> None:
    assert names(choose_merges(segments, FOREVER, window_us)) == chosen
    # The order in which a commit lists them does not matter.
    assert names(choose_merges(segments[::-1], FOREVER, window_us)) == chosen


def test_sides_and_instances_are_never_merged_with_one_another() -> None:
    groups = [("left", 0), ("left", 1), ("right", 0)]
    segments = [
        segment(f"{side}{instance}-{i}", side=side, instance=instance, first_batch=i)
        for i in range(FANOUT)
        for side, instance in groups
    ]
    merges = choose_merges(segments, FOREVER, 800)
    assert [(m.side, m.instance) for m in merges] == groups
    for merge in merges:
        assert {(s.side, s.instance) for s in merge.segments} == {(merge.side, merge.instance)}


def test_a_husk_is_rewritten_alone() -> None:
    bulk_gone = segment("husk", min_time_us=0, bulk_time_us=9, max_time_us=10_000)
    still_whole = segment("whole", min_time_us=0, bulk_time_us=11, max_time_us=10_000)
    no_stray = segment("short", min_time_us=0, bulk_time_us=9, max_time_us=12)
    keep: dict[str, int | None] = {"left": 10, "right": None}
    for segments, chosen in (
        ([bulk_gone, still_whole, no_stray], [["husk"]]),
        ([still_whole, no_stray], []),
    ):
        assert names(choose_merges(segments, keep, 800)) == chosen
    assert names(choose_merges([bulk_gone], FOREVER, 800)) == []


@pytest.mark.parametrize(
    ("newest", "keep_from", "gone"),
    [(9, 10, True), (10, 10, False), (11, 10, False), (9, None, False)],
)
def test_a_segment_expires_with_its_newest_row(
    newest: int, keep_from: int | None, gone: bool
) -> None:
    held = segment(side="right", min_time_us=-100, max_time_us=newest)
    assert expired(held, {"left": 1_000_000, "right": keep_from}) is gone
