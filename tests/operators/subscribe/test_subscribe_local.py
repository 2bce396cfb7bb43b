"""Subscriptions against the plainest model, whatever the tiles do and whenever the process dies."""

import tempfile
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.control.memory import Planner
from skewless.control.tiles import MapRecord
from skewless.engine.badrows import BadRowError
from skewless.engine.chunks import Limits
from skewless.load.corners import CornerCounts
from skewless.operators.subscribe.window import PastWindow
from skewless.planning.replicated import Replicated
from skewless.planning.staticgrid import StaticGrid
from skewless.planning.swarm import Swarm
from skewless.planning.tiles.auto import AutoTiles
from skewless.state import compaction
from skewless.state.faults import Fault
from skewless.testing.local import spread_hash
from skewless.testing.local_subscribe import LocalSubscribe
from tests.operators.subscribe.cases import (
    CIRCLES,
    POINTS,
    SECOND,
    Model,
    Restless,
    is_inside,
    pairs_of,
    points_table,
    queries_table,
    rectangles,
)

BOX = ("x_min", "y_min", "x_max", "y_max")
CIRCLE = ("x", "y", "radius")
STATIC = ("id", *BOX)
STREAMED = ("id", *BOX, "op")
TIMED = (*STREAMED, "asked_at")
KILLS = st.lists(
    st.tuples(
        st.sampled_from(["before_sink", "in_task", "after_sink", "before_commit", "after_commit"]),
        st.integers(0, 3),
    ),
    max_size=2,
)


def named(values: tuple[float, ...], names: tuple[str, ...] = BOX) -> dict[str, Any]:
    return dict(zip(names, values, strict=True))


def numbered(batches: list[list[tuple[float, float]]]) -> list[pa.Table]:
    first, tables = 0, []
    for places in batches:
        tables.append(points_table(places, first))
        first += len(places)
    return tables


@given(
    batches=st.lists(POINTS, min_size=1, max_size=4),
    boxes=st.lists(rectangles(), max_size=25),
    seed=st.integers(0, 2**32),
    kills=KILLS,
)
@settings(max_examples=60)
def test_a_table_of_rectangles(batches, boxes, seed, kills) -> None:
    """Ids may be there several times: each row of a table is a subscription of its own."""
    rows = [{"id": n % 7, **named(box)} for n, box in enumerate(boxes)]
    asked = [queries_table(rows, STATIC), *[queries_table([], STATIC)] * (len(batches) - 1)]
    with tempfile.TemporaryDirectory() as directory:
        query = LocalSubscribe(directory, policy=Restless(seed=seed))
        faults = [Fault(point, batch) for point, batch in kills if batch < len(batches)]
        result = query.run(list(zip(numbered(batches), asked, strict=True)), faults)
    expected: Counter[tuple[int, int]] = Counter()
    for pid, (x, y) in enumerate(place for places in batches for place in places):
        for row in rows:
            expected[pid, row["id"]] += is_inside(x, y, row)
    assert pairs_of(result) == Counter({pair: n for pair, n in expected.items() if n})


@given(
    batches=st.lists(POINTS, min_size=1, max_size=3),
    circles=st.lists(CIRCLES, max_size=20),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=40)
def test_a_table_of_circles(batches, circles, seed) -> None:
    names = ("x", "y", "radius")
    rows = [{"id": n, **named(circle, names)} for n, circle in enumerate(circles)]
    table = queries_table(rows, ("id", *names))
    asked = [table, *[table.slice(0, 0)] * (len(batches) - 1)]
    with tempfile.TemporaryDirectory() as directory:
        query = LocalSubscribe(directory, policy=Restless(seed=seed), circles=True)
        result = query.run(list(zip(numbered(batches), asked, strict=True)))
    places = [place for batch in batches for place in batch]
    expected = Counter(
        (pid, row["id"])
        for pid, (x, y) in enumerate(places)
        for row in rows
        if is_inside(x, y, row)
    )
    assert pairs_of(result) == expected


@st.composite
def histories(
    draw: st.DrawFn, *, timed: bool, circles: bool = False, most: int = 6
) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Batches of points and of what becomes of subscriptions, in the order of their rows."""
    history = []
    first = 0
    kinds = ["add", "add", "change", "remove", *(["snapshot"] * 2 if timed else [])]
    for batch in range(draw(st.integers(1, most))):
        places = draw(POINTS)
        times = [(10 * batch + draw(st.integers(-15, 9))) * SECOND if timed else 0 for _ in places]
        rows = []
        for _ in range(draw(st.integers(0, 6))):
            row = {"id": draw(st.integers(0, 5)), "op": draw(st.sampled_from(kinds))}
            if row["op"] != "remove" or draw(st.booleans()):
                row |= named(draw(CIRCLES), CIRCLE) if circles else named(draw(rectangles()))
            if timed:
                row["asked_at"] = (10 * batch + draw(st.integers(-5, 9))) * SECOND
            rows.append(row)
        points = [(first + n, *place, times[n]) for n, place in enumerate(places)]
        first += len(places)
        history.append((points, rows))
    return history


def tables_of(history: Any, names: tuple[str, ...], *, timed: bool) -> list[Any]:
    batches = []
    for points, rows in history:
        places = [(x, y) for _, x, y, _ in points]
        times = [at for *_, at in points] if timed else None
        first = points[0][0] if points else 0
        batches.append((points_table(places, first, times), queries_table(rows, names)))
    return batches


@given(
    history=histories(timed=False),
    seed=st.integers(0, 2**32),
    kills=KILLS,
    poor=st.booleans(),
)
@settings(max_examples=80)
def test_subscriptions_that_come_and_go(history, seed, kills, poor) -> None:
    """The last row of an id in a batch counts; hashes of ids that collide change nothing."""
    model = Model()
    for points, rows in history:
        model.step(points, rows)

    def poor_hash(keys: pa.Table) -> Any:
        return spread_hash(keys) % np.uint64(2)

    with tempfile.TemporaryDirectory() as directory:
        query = LocalSubscribe(
            directory,
            policy=Restless(seed=seed),
            changes=True,
            hash_keys=poor_hash if poor else spread_hash,
        )
        faults = [Fault(point, batch) for point, batch in kills if batch < len(history)]
        result = query.run(tables_of(history, STREAMED, timed=False), faults)
        assert pairs_of(result) == model.pairs()
        state = query.engine.begin(len(history)).parts[0].state
        record = MapRecord.from_json(Planner.from_json(state.planner).map)
    grid = query.operator.grid
    boxes = np.array([[row[name] for name in BOX] for row in model.holding.values()])
    boxes = boxes.reshape(-1, 4).T
    ranges = [
        grid.rows(boxes[1]),
        grid.columns(boxes[0]),
        grid.rows(boxes[3]),
        grid.columns(boxes[2]),
    ]
    assert record.subscriptions == CornerCounts.of(grid.side, *ranges)


@given(
    history=histories(timed=False, circles=True, most=12),
    seed=st.integers(0, 2**32),
    fanout=st.sampled_from([2, 3]),
    kills=KILLS,
)
@settings(max_examples=60)
def test_circles_that_come_and_go_across_merges(history, seed, fanout, kills) -> None:
    """Segments are merged all the time, while tiles move."""
    model = Model()
    for points, rows in history:
        model.step(points, rows)
    names = ("id", *CIRCLE, "op")
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "FANOUT", fanout)
        query = LocalSubscribe(directory, policy=Restless(seed=seed), changes=True, circles=True)
        faults = [Fault(point, batch) for point, batch in kills if batch < len(history)]
        result = query.run(tables_of(history, names, timed=False), faults)
    assert pairs_of(result) == model.pairs()
    assert query.progress[-1]["operators"][0]["subscriptions"] == len(model.holding)


@given(
    history=histories(timed=True),
    seed=st.integers(0, 2**32),
    kills=KILLS,
    tumbling=st.booleans(),
    delay=st.sampled_from([0, 10 * SECOND]),
)
@settings(max_examples=80)
def test_snapshots_of_past_points(history, seed, kills, tumbling, delay) -> None:
    size = 12 * SECOND
    model = Model()
    for points, rows in history:
        model.step(points, rows, size, tumbling=tumbling, delay_us=delay)
    with tempfile.TemporaryDirectory() as directory:
        query = LocalSubscribe(
            directory,
            policy=Restless(seed=seed),
            changes=True,
            window=PastWindow(size, tumbling),
            delay_us=delay,
        )
        faults = [Fault(point, batch) for point, batch in kills if batch < len(history)]
        result = query.run(tables_of(history, TIMED, timed=True), faults)
    assert pairs_of(result) == model.pairs()


@pytest.mark.parametrize(
    "policy",
    [
        AutoTiles(instances=3, cells=16),
        Swarm(instances=3, cells=16),
        StaticGrid(instances=3, cells=16),
        StaticGrid(instances=3, cells=16, history=np.full((50, 2), 20.0)),
        Replicated(instances=3),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_every_policy_gives_the_same_pairs(tmp_path, policy) -> None:
    rng = np.random.default_rng(3)
    corners = rng.uniform(0, 95, (200, 2))
    rows = [{"id": n, **named((x, y, x + 5, y + 3))} for n, (x, y) in enumerate(corners.tolist())]
    hot = [rng.normal(20 + 10 * batch, 3, (300, 2)).clip(0, 100) for batch in range(6)]
    batches = numbered([list(map(tuple, places.tolist())) for places in hot])
    empty = queries_table([], STATIC)
    asked = [queries_table(rows, STATIC), *[empty] * 5]
    query = LocalSubscribe(str(tmp_path), policy=policy)
    result = query.run(list(zip(batches, asked, strict=True)))
    places = np.concatenate(hot)
    boxes = np.array([[row[name] for name in BOX] for row in rows])
    inside = (places[:, None, 0] >= boxes[:, 0]) & (places[:, None, 0] <= boxes[:, 2])
    inside &= (places[:, None, 1] >= boxes[:, 1]) & (places[:, None, 1] <= boxes[:, 3])
    expected = Counter(zip(*(found.tolist() for found in np.nonzero(inside)), strict=True))
    assert pairs_of(result) == expected
    assert query.progress[-1]["operators"][0]["subscriptions"] == 200


def test_many_subscriptions_on_one_spot_come_in_bounded_chunks(tmp_path) -> None:
    many = 100_000
    spot = {name: pa.array(np.full(many, 50.0)) for name in BOX}
    asked = pa.table({"id": pa.array(range(many)), **spot})
    points = points_table([(50.0, 50.0), (50.0, 50.1), (50.0, 50.0)], 0)
    limits = Limits(chunk_rows=1000)
    query = LocalSubscribe(str(tmp_path), limits=limits)
    result = query.run([(points, asked)])
    assert result.num_rows == 2 * many
    assert set(result.column("pid").to_pylist()) == {0, 2}
    assert max(len(batch) for batch in query.sink[0].to_batches()) <= 1000


def test_merged_segments_leave_dead_rows_and_their_marks_behind(tmp_path) -> None:
    query = LocalSubscribe(str(tmp_path), policy=Replicated(instances=1), changes=True)
    box = named((10.0, 10.0, 20.0, 20.0))
    nothing = points_table([], 0)
    batches = [
        (nothing, queries_table([{"id": n, "op": "add", **box}], STREAMED)) for n in range(6)
    ]
    batches += [(nothing, queries_table([{"id": n, "op": "remove"}], STREAMED)) for n in range(6)]
    batches += [(nothing, queries_table([{"id": 99, "op": "change", **box}], STREAMED))] * 80
    batches.append((points_table([(15.0, 15.0)], 0), queries_table([], STREAMED)))
    result = query.run(batches)
    assert pairs_of(result) == Counter([(0, 99)])
    last = query.progress[-1]["operators"][0]
    assert last["subscriptions"] == 1
    assert last["state"]["rows"]["queries"] < 30
    assert last["state"]["segments"] < 30


@pytest.mark.parametrize("place", [(float("nan"), 5.0), (5.0, 100.1), (-0.1, 5.0), (5.0, np.inf)])
def test_a_point_outside_the_bounds_is_a_bad_row(tmp_path, place) -> None:
    points = points_table([(50.0, 50.0), place], 0)
    asked = queries_table([{"id": 1, **named((0.0, 0.0, 100.0, 100.0))}], STATIC)
    with pytest.raises(BadRowError, match="points input has a row whose place is NaN"):
        LocalSubscribe(str(tmp_path / "fail")).run([(points, asked)])
    query = LocalSubscribe(str(tmp_path / "drop"), drop_bad_rows=True)
    assert pairs_of(query.run([(points, asked)])) == Counter([(0, 1)])
    told = query.progress[0]["operators"][0]
    assert told["badRows"] == {"points": 1, "queries": 0}
    assert told["dropped"][0]["row"]["pid"] == 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (named((20.0, 0.0, 10.0, 5.0)), "inverted"),
        (named((float("nan"), 0.0, 10.0, 5.0)), "NaN"),
        (named((None, 0.0, 10.0, 5.0)), "null"),
        ({"op": "upsert", **named((0.0, 0.0, 10.0, 5.0))}, "op is none of"),
        ({"id": None, **named((0.0, 0.0, 10.0, 5.0))}, "id is null"),
        ({"op": "snapshot", **named((0.0, 0.0, 10.0, 5.0))}, "no window"),
    ],
)
def test_bad_subscriptions_are_counted_once(tmp_path, row, reason) -> None:
    good = {"id": 1, "op": "add", **named((0.0, 0.0, 100.0, 100.0))}
    asked = queries_table([{"id": 2, "op": "add", **row}, good], STREAMED)
    points = points_table([(5.0, 3.0)], 0)
    policy = Replicated(instances=3)
    with pytest.raises(BadRowError, match=reason):
        LocalSubscribe(str(tmp_path / "fail"), changes=True, policy=policy).run([(points, asked)])
    query = LocalSubscribe(str(tmp_path / "drop"), changes=True, policy=policy, drop_bad_rows=True)
    assert pairs_of(query.run([(points, asked)])) == Counter([(0, 1)])
    assert query.progress[0]["operators"][0]["badRows"] == {"points": 0, "queries": 1}


@pytest.mark.parametrize("radius", [-1.0, float("nan"), float("inf")])
def test_a_bad_change_leaves_what_was_there(tmp_path, radius) -> None:
    """Also on instances that the new circle would not have reached."""
    words = [
        {"id": 1, "op": "add", **named((90.0, 90.0, 5.0), CIRCLE)},
        {"id": 1, "op": "change", **named((10.0, 10.0, radius), CIRCLE)},
    ]
    points = [(92.0, 90.0)]
    batches = [
        (points_table(points, n), queries_table([word], ("id", *CIRCLE, "op")))
        for n, word in enumerate(words)
    ]
    query = LocalSubscribe(
        str(tmp_path),
        policy=StaticGrid(instances=4, cells=8),
        changes=True,
        circles=True,
        drop_bad_rows=True,
    )
    assert pairs_of(query.run(batches)) == Counter([(0, 1), (1, 1)])


def test_points_without_a_place_match_nothing_and_are_counted(tmp_path) -> None:
    points = pa.table(
        {"pid": pa.array([0, 1]), "x": pa.array([None, 5.0]), "y": pa.array([5.0, 5.0])}
    )
    asked = queries_table([{"id": 1, **named((0.0, 0.0, 100.0, 100.0))}], STATIC)
    query = LocalSubscribe(str(tmp_path))
    assert pairs_of(query.run([(points, asked)])) == Counter([(1, 1)])
    assert query.progress[0]["operators"][0]["nullPlaces"] == 1


def test_points_of_the_past_are_forgotten(tmp_path) -> None:
    size = 10 * SECOND
    query = LocalSubscribe(
        str(tmp_path), changes=True, window=PastWindow(size), policy=Replicated(instances=2)
    )
    none = queries_table([], TIMED)
    batches = [
        (points_table([(5.0, 5.0)] * 10, 10 * n, [n * SECOND] * 10), none) for n in range(60)
    ]
    query.run(batches)
    assert query.progress[-1]["operators"][0]["state"]["rows"]["points"] < 200
