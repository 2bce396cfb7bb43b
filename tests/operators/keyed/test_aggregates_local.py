"""Windowed aggregates without Spark, against DuckDB: whatever batches, windows and routes are."""

import tempfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.engine.badrows import BadRowError
from skewless.engine.chunks import Limits
from skewless.operators.keyed.process import Agg, Count
from skewless.operators.keyed.windows import SessionWindow, Window, Windows
from skewless.planning.hash import Hash
from skewless.testing import POINTS, Fault
from skewless.testing.local import spread_hash
from skewless.testing.local_keyed import LocalKeyed

from .cases import (
    SCHEMA,
    SECOND,
    Restless,
    batches,
    delays,
    poor_hash,
    routes,
    sessions,
    table,
    windows,
)
from .oracle import MEASURES, NEVER_LATE, closed_groups, expected, grouped, on_time, shown

TINY = Limits(run_bytes=1, chunk_bytes=1, chunk_rows=1)


def keyed(directory: str, window: Window, delay: int | None, mode: str, **options) -> LocalKeyed:
    runner = options.pop("runner", LocalKeyed)
    delay_us = None if delay is None else delay * SECOND
    options.setdefault("policy", Hash(3))
    return runner(
        directory,
        SCHEMA,
        ["k", "g"],
        "t",
        Agg(MEASURES),
        window,
        delay_us,
        mode,
        **options,
    )


def check_append(made: list[pa.Table], window: Window, delay: int, faults=(), **options) -> None:
    with tempfile.TemporaryDirectory() as directory:
        runner = keyed(directory, window, delay, "append", **options)
        found = runner.run(made, faults)
    assert shown(found, window) == expected(closed_groups(made, delay * SECOND, window))
    assert found.schema.equals(runner.operator.output_schema)


def check_update(made: list[pa.Table], window: Window, delay: int | None, **options) -> None:
    with tempfile.TemporaryDirectory() as directory:
        runner = keyed(directory, window, delay, "update", **options)
        runner.run(made)
    so_far: list[pa.Table] = []
    delay_us = None if delay is None else delay * SECOND
    kept = on_time(made, delay_us, NEVER_LATE if window is None else window)
    for number, (rows, _) in enumerate(kept):
        so_far.append(rows)
        touched = {row[:4] for row in expected(grouped(rows, window))}
        wanted = [
            row for row in expected(grouped(pa.concat_tables(so_far), window)) if row[:4] in touched
        ]
        assert shown(runner.sink[number], window) == wanted


@given(made=batches(), window=windows, delay=delays)
@settings(max_examples=60)
def test_closed_windows_equal_the_oracle(made, window, delay) -> None:
    check_append(made, window, delay)


@given(made=batches(), window=sessions, delay=delays)
@settings(max_examples=60)
def test_closed_sessions_equal_the_oracle(made, window, delay) -> None:
    check_append(made, window, delay)


@given(made=batches(), window=st.one_of(windows, st.none()), delay=st.one_of(st.none(), delays))
@settings(max_examples=60)
def test_changed_groups_equal_the_oracle(made, window, delay) -> None:
    check_update(made, window, delay)


@given(made=batches(), window=st.one_of(windows, sessions), delay=delays)
@settings(max_examples=40)
def test_colliding_hashes_change_nothing(made, window, delay) -> None:
    check_append(made, window, delay, hash_keys=poor_hash)


@given(made=batches(), window=windows, delay=delays)
@settings(max_examples=20)
def test_colliding_hashes_change_no_update(made, window, delay) -> None:
    check_update(made, window, delay, hash_keys=poor_hash)


@given(made=batches(), window=st.one_of(windows, sessions), delay=delays)
@settings(max_examples=30)
def test_small_pieces_change_nothing(made, window, delay) -> None:
    """A batch that comes in many pieces, and groups given out a few at a time."""
    check_append(made, window, delay, limits=TINY)


@given(
    made=batches(),
    window=st.one_of(windows, sessions),
    delay=delays,
    ways=st.lists(routes(), min_size=1, max_size=4),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 5)), max_size=2),
)
@settings(max_examples=80)
def test_a_route_that_changes_every_batch_changes_nothing(made, window, delay, ways, kills) -> None:
    """Split keys among them: their partials come together at the emission."""
    in_order = sorted(kills, key=lambda k: k[1])
    faults = tuple(Fault(point, batch) for point, batch in in_order if batch < len(made))
    Restless.ways = tuple(ways)
    check_append(made, window, delay, faults, runner=Restless)


@given(
    made=batches(),
    window=st.one_of(windows, st.none()),
    delay=delays,
    ways=st.lists(routes(most_members=1), min_size=1, max_size=4),
)
@settings(max_examples=60)
def test_a_route_that_changes_every_batch_changes_no_update(made, window, delay, ways) -> None:
    Restless.ways = tuple(ways)
    check_update(made, window, delay, runner=Restless)


def many_batches(count: int, rows: int) -> list[pa.Table]:
    rng = np.random.default_rng(5)
    made = []
    for number in range(count):
        drawn = zip(
            rng.choice(["x", "y", "z"], rows).tolist(),
            rng.integers(0, 3, rows).tolist(),
            rng.integers(0, 4, rows).tolist(),
            rng.integers(-5, 5, rows).tolist(),
            strict=True,
        )
        made.append(table(list(drawn), 2 * number))
    return made


@pytest.mark.parametrize(
    "window",
    [
        Windows(40 * SECOND, 40 * SECOND),
        Windows(40 * SECOND, 5 * SECOND),
        SessionWindow("3 seconds"),
    ],
    ids=["tumbling", "sliding", "sessions that never pause"],
)
def test_many_batches_are_compacted_and_forgotten(window: Window, tmp_path) -> None:
    made = many_batches(90, 30)
    runner = keyed(str(tmp_path), window, 3, "append")
    found = runner.run(made)
    assert shown(found, window) == expected(closed_groups(made, 3 * SECOND, window))
    states = [p["operators"][0]["state"] for p in runner.progress]
    assert max(s["merged"] for s in states) > 0, "compaction never ran"
    # Nine keys in at most nine open windows, on three instances with at most FANOUT segments each.
    assert max(s["segments"] for s in states) <= 40
    assert max(s["rows"] for s in states[45:]) <= 2 * max(s["rows"] for s in states[20:45])
    live = {s.name for s in runner.engine._last.operators[0].segments}
    assert len(list((tmp_path / "segments").rglob("*.arrow"))) < len(live) + 20, "garbage is left"


def test_state_is_bounded_by_groups_not_rows(tmp_path) -> None:
    made = [table([("x", 0, 1, v % 5) for v in range(500)]) for _ in range(30)]
    runner = keyed(str(tmp_path), Windows(60 * SECOND, 60 * SECOND), 30, "append", policy=Hash(1))
    runner.run(made)
    assert runner.progress[-1]["operators"][0]["state"]["rows"] <= 30


def test_a_group_is_given_out_in_the_batch_whose_watermark_passes_its_end(tmp_path) -> None:
    window = Windows(10 * SECOND, 10 * SECOND)
    runner = keyed(str(tmp_path), window, 0, "append")
    # The windows of these times end 10, 20, 30 seconds after EPOCH.
    runner.run([table([("x", 0, 1, 1)]), table([("x", 0, 9, 1)]), table([("x", 0, 10, 1)])])
    assert [runner.sink[n].num_rows for n in range(3)] == [0, 0, 1]
    assert runner.sink[2].column("rows").to_pylist() == [2]
    late = [p["operators"][0]["late"] for p in runner.progress]
    assert late == [0, 0, 0]
    # W is 10 seconds after EPOCH, and so is the end of the first window: it is closed.
    runner.step(3, table([("x", 0, 9, 1), ("x", 0, 10, 1), ("x", 0, 2, 1)]))
    assert runner.progress[-1]["operators"][0]["late"] == 2, "its window has closed"
    runner.step(4, table([("x", 0, 20, 1)]))
    assert runner.sink[4].column("rows").to_pylist() == [2], "time ≤ W in an open window counts"


def test_a_row_counts_in_those_of_its_sliding_windows_that_are_open(tmp_path) -> None:
    window = Windows(10 * SECOND, 5 * SECOND)
    for mode in ("append", "update"):
        runner = keyed(str(tmp_path / mode), window, 0, mode)
        # Second 12 is in the windows that end at 15 and 20; the watermark has closed the first.
        runner.run([table([("x", 0, 16, 1)]), table([("x", 0, 12, 1), ("x", 0, 7, 1)])])
        assert runner.progress[-1]["operators"][0]["late"] == 1
        if mode == "update":
            assert shown(runner.sink[1], window)[0][4] == 2
            assert runner.sink[1].num_rows == 1, "a closed window is not given again"


def test_without_a_window_no_row_of_an_aggregate_is_late(tmp_path) -> None:
    runner = keyed(str(tmp_path), None, 0, "update")
    runner.run([table([("x", 0, 40, 1)]), table([("x", 0, 1, 1)])])
    assert runner.sink[1].column("rows").to_pylist() == [2]
    assert runner.progress[-1]["operators"][0]["late"] == 0


def test_a_closed_session_takes_no_more_rows(tmp_path) -> None:
    """As in Spark: a row whose own session is open begins another one, even if both overlap."""
    window = SessionWindow("10 seconds")
    runner = keyed(str(tmp_path), window, 0, "append")
    moments = [[0], [11], [6, 1], [40]]
    runner.run([table([("x", 0, s, 1) for s in batch]) for batch in moments])
    assert [runner.sink[n].num_rows for n in range(4)] == [0, 1, 0, 1]
    assert runner.sink[3].column("rows").to_pylist() == [2]
    assert [p["operators"][0]["late"] for p in runner.progress] == [0, 0, 1, 0]


def test_a_list_is_in_the_order_of_event_times(tmp_path) -> None:
    runner = keyed(str(tmp_path), Windows(60 * SECOND, 60 * SECOND), 30, "update")
    runner.run([table([("x", 0, 9, 3), ("x", 0, 1, 1)]), table([("x", 0, 5, 2), ("x", 0, 20, 4)])])
    assert runner.sink[0].column("bag").to_pylist() == [[1, 3]]
    assert runner.sink[1].column("bag").to_pylist() == [[1, 2, 3, 4]]


def test_a_null_time_stops_the_batch_and_names_the_row(tmp_path) -> None:
    bad = pa.Table.from_pylist([{"k": "x", "g": 1, "t": None, "i": 7}], SCHEMA)
    runner = keyed(str(tmp_path), Windows(SECOND, SECOND), 0, "append")
    with pytest.raises(BadRowError, match=r"'i': 7.*badRows"):
        runner.step(0, bad)
    assert not list((tmp_path / "commits").iterdir()), "nothing is committed"
    dropping = keyed(
        str(tmp_path / "drop"), Windows(SECOND, SECOND), 0, "append", drop_bad_rows=True
    )
    dropping.step(0, bad)
    assert dropping.progress[0]["operators"][0]["badRows"] == 1


@pytest.mark.parametrize("hash_keys", [None, lambda keys: np.ones(keys.num_rows, np.uint64)])
def test_floats_as_keys_group_as_in_spark(tmp_path, hash_keys) -> None:
    """−0.0 is 0.0, and NaN is one group, by the hash of the test kit and by a poor one."""
    schema = pa.schema([("x", pa.float64()), ("t", pa.timestamp("us", "UTC"))])
    rows = [{"x": x, "t": table([("x", 0, 1, 1)])["t"][0]} for x in (0.0, -0.0, float("nan"))]
    rows.append({"x": float("nan"), "t": rows[0]["t"]})
    runner = LocalKeyed(
        str(tmp_path),
        schema,
        ["x"],
        "t",
        Count(),
        mode="update",
        policy=Hash(64),  # equal rows would hardly meet by chance
        hash_keys=hash_keys or spread_hash,
    )
    runner.run([pa.Table.from_pylist(rows, schema)])
    found = {str(row["x"]): row["count"] for row in runner.rows().to_pylist()}
    assert found == {"0.0": 2, "nan": 2}
