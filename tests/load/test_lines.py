"""SWARM's statistics equal brute force, round after round, and after splits and merges."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.load.corners import CornerCounts
from skewless.load.lines import Collectors, Lines, fade
from skewless.routing.tiles import Axis, Tile

SIDE = 8


@dataclass
class World:
    """All points and queries so far, and the same as the driver counts them."""

    rng: np.random.Generator
    points: list[np.ndarray] = field(default_factory=list)  # rows and columns, one array per round
    queries: list[np.ndarray] = field(default_factory=list)  # top, left, bottom, right
    faded: np.ndarray | None = None
    subscriptions: CornerCounts = field(default_factory=lambda: CornerCounts.empty(SIDE))

    def round(self) -> None:
        rng = self.rng
        self.points.append(rng.integers(0, SIDE, (2, rng.integers(0, 30))))
        ends = np.sort(rng.integers(0, SIDE, (2, 2, rng.integers(0, 10))), axis=0)
        queries = np.concatenate([ends[0], ends[1]])
        self.queries.append(queries)
        self.arrived = CornerCounts.of(SIDE, *queries)
        self.subscriptions += self.arrived
        rows, columns = self.points[-1]
        self.new = np.bincount(rows * SIDE + columns, minlength=SIDE * SIDE).astype(float)
        self.faded = fade(self.faded, self.new)

    def derived(self, tile: Tile, axis: Axis) -> Lines:
        assert self.faded is not None
        return Lines.of(tile, axis, self.faded, self.new, self.subscriptions, self.arrived)

    def collected(self, tile: Tile, axis: Axis, round_: int) -> Collectors:
        """What a machine with this tile receives in a round."""
        a = 0 if axis == "rows" else 1
        start, end = ((tile.top, tile.bottom), (tile.left, tile.right))[a]
        rows, columns = self.points[round_]
        inside = (rows >= tile.top) & (rows < tile.bottom)
        inside &= (columns >= tile.left) & (columns < tile.right)
        top, left, bottom, right = self.queries[round_]
        meets = (top < tile.bottom) & (bottom >= tile.top)
        meets &= (left < tile.right) & (right >= tile.left)
        first, last = ((top, bottom), (left, right))[a]
        return (
            Collectors.empty(end - start)
            .with_points(self.points[round_][a][inside] - start)
            .with_queries(first[meets].clip(start) - start, last[meets].clip(max=end - 1) - start)
        )

    def brute(self, tile: Tile, axis: Axis) -> Lines:
        """Every count by looking at all points and all queries."""
        a = 0 if axis == "rows" else 1
        start, end = ((tile.top, tile.bottom), (tile.left, tile.right))[a]
        weights = [0.5 ** (len(self.points) - 1 - n) for n in range(len(self.points))]
        everything = np.concatenate(self.queries, axis=1)
        lines: list[list[float]] = []
        for line in range(start, end):
            upto = Tile(tile.top, tile.left, line + 1, tile.right, (0,))
            if axis == "columns":
                upto = Tile(tile.top, tile.left, tile.bottom, line + 1, (0,))
            points = [within(upto, *points) for points in self.points]
            lines.append(
                [
                    sum(w * n for w, n in zip(weights, points, strict=True)),
                    meeting(upto, everything).sum(),
                    points[-1] + meeting(upto, self.queries[-1]).sum(),
                    crossing(tile, everything, a, line, start),
                    crossing(tile, self.queries[-1], a, line, start),
                ]
            )
        return Lines(*np.array(lines, float).T)


def within(tile: Tile, rows: np.ndarray, columns: np.ndarray) -> int:
    inside = (rows >= tile.top) & (rows < tile.bottom)
    return int((inside & (columns >= tile.left) & (columns < tile.right)).sum())


def meeting(tile: Tile, queries: np.ndarray) -> np.ndarray:
    top, left, bottom, right = queries
    meets = (top < tile.bottom) & (bottom >= tile.top)
    return meets & (left < tile.right) & (right >= tile.left)


def crossing(tile: Tile, queries: np.ndarray, axis: int, line: int, start: int) -> int:
    first, last = queries[axis], queries[axis + 2]
    return int((meeting(tile, queries) & (first < line) & (last >= line) & (line > start)).sum())


def same(one: Lines, other: Lines) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("points", "queries", "received", "spans", "new_spans")
    )


@st.composite
def tiles(draw: st.DrawFn) -> Tile:
    top, bottom = sorted(draw(st.sets(st.integers(0, SIDE), min_size=2, max_size=2)))
    left, right = sorted(draw(st.sets(st.integers(0, SIDE), min_size=2, max_size=2)))
    return Tile(top, left, bottom, right, (0,))


AXES = st.sampled_from(["rows", "columns"])


@settings(deadline=None)
@given(st.integers(0, 2**32), tiles(), AXES, st.integers(1, 5))
def test_collectors_and_one_pass_per_round_equal_brute_force_and_corners(
    seed: int, tile: Tile, axis: Axis, rounds: int
) -> None:
    world = World(np.random.default_rng(seed))
    lines = Lines.empty(tile.rows if axis == "rows" else tile.columns)
    for round_ in range(rounds):
        world.round()
        lines = lines.round(world.collected(tile, axis, round_))
        assert same(lines, world.brute(tile, axis)), f"seed {seed}"
        assert same(lines, world.derived(tile, axis)), f"seed {seed}"


@settings(deadline=None)
@given(st.integers(0, 2**32), tiles(), AXES, st.data())
def test_tiles_that_are_split_and_merged_keep_exact_statistics(
    seed: int, tile: Tile, axis: Axis, data: st.DataObject
) -> None:
    world = World(np.random.default_rng(seed))
    for _ in range(3):
        world.round()
        lines = world.derived(tile, axis)
        if lines.count > 1:
            at = data.draw(st.integers(1, lines.count - 1))
            halves = tile.cut(axis, at)
            for part, statistics, counts in zip(
                halves, lines.split(at), lines.parts(at), strict=True
            ):
                assert same(statistics, world.brute(part, axis)), f"seed {seed}"
                whole = statistics.whole
                assert (whole.points, whole.queries, whole.received) == (
                    counts.points,
                    counts.queries,
                    counts.received,
                )
                other: Axis = "columns" if axis == "rows" else "rows"
                assert same(world.derived(part, other), world.brute(part, other))
            # Sometimes the round goes on with a part, and sometimes with the whole again.
            tile = data.draw(st.sampled_from([tile, *halves]))
    world.round()
    whole = Tile(0, 0, SIDE, SIDE, (0,))
    assert same(world.derived(whole, axis), world.brute(whole, axis))


def test_the_papers_round() -> None:
    """Fig. 6: two points in the third row of a tile of 4 × 2; Q_A within one cell of the second
    row, Q_B from the first row on, Q_C in the second column."""
    rows = Collectors.empty(4).with_points([2, 2])
    assert rows.points.tolist() == [0, 0, 2, 0]
    columns = Collectors.empty(2).with_points([0, 1])
    assert columns.points.tolist() == [1, 1]
    rows = rows.with_queries([1], [1])
    assert rows.queries.tolist() == [0, 1, 0, 0]
    assert rows.spans.tolist() == [0, 0, 0, 0]
    # Row 3 of Fig. 5: two points and two queries came in the last round, so R = 4; two queries
    # reach into it from the second row, one of them new.
    before = Lines(*np.array([[4, 8, 12, 16], [1, 2, 3, 3], [0] * 4, [0, 0, 1, 0], [0] * 4]) * 1.0)
    third = before.round(rows.with_queries([0], [2]))
    assert (third.received[2], third.spans[2], third.new_spans[2]) == (4, 2, 1)
    assert (third.points[2], third.queries[2]) == (8, 5)


def test_a_split_is_within_the_tile() -> None:
    with pytest.raises(SkewlessError, match="lines from 1 to 3"):
        Lines.empty(4).parts(4)
