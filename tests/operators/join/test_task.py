"""One task of a join: run again, with its rows in another order, and on rows that it refuses."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skewless.engine.badrows import BadRowError
from skewless.engine.chunks import Limits
from skewless.engine.columns import TIME
from skewless.operators.join.bounds import LEFT, RIGHT, Bounds
from skewless.planning.hash import Hash
from skewless.state.segment import open_segment
from skewless.state.watermark import Delays
from skewless.testing import LocalJoin, assert_same_rows, join_oracle

STAMP = pa.timestamp("us", "UTC")
SCHEMAS = (
    pa.schema([("k", pa.string()), ("lt", STAMP), ("a", pa.int64())]),
    pa.schema([("k", pa.string()), ("rt", STAMP), ("b", pa.int64())]),
)
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
SECOND = 1_000_000


def local_join(directory: Path, limits: Limits | None = None) -> LocalJoin:
    return LocalJoin(
        str(directory),
        ["k"],
        ("lt", "rt"),
        Bounds(-3 * SECOND, 3 * SECOND),
        Delays({LEFT: 5 * SECOND, RIGHT: 5 * SECOND}),
        *SCHEMAS,
        policy=Hash(1),
        limits=limits or Limits(),
    )


def batch_of(seed: int) -> tuple[pa.Table, pa.Table]:
    """Few keys and moments, so that many rows are equal in both."""
    rng = np.random.default_rng(seed)
    sides = []
    for schema in SCHEMAS:
        moments = [EPOCH + timedelta(seconds=int(s) + 4 * seed) for s in rng.integers(0, 6, 60)]
        keys = rng.choice(["x", "y", "z"], 60).tolist()
        sides.append(pa.table([keys, moments, list(range(60))], schema=schema))
    return sides[0], sides[1]


def bag(tables: list[pa.Table]) -> Counter:
    return Counter(repr(row) for table in tables for row in table.to_pylist())


def state_of(joined: LocalJoin) -> dict[str, Counter]:
    """The stored rows of every side, each as often as it is stored."""
    segments = joined.engine._last.operators[0].segments
    return {
        side: bag(
            [
                pa.Table.from_batches([open_segment(joined.engine.storage, s, TIME).rows])
                for s in segments
                if s.side == side
            ]
        )
        for side in (LEFT, RIGHT)
    }


@pytest.mark.parametrize("run_bytes", [Limits().run_bytes, 1], ids=["one run", "many runs"])
def test_a_task_that_runs_twice_in_reversed_order_leaves_one_equal_state(
    tmp_path: Path, run_bytes: int
) -> None:
    """A shuffle has no order: the second run of a task may see its rows the other way round."""
    batches = [batch_of(0), batch_of(1), batch_of(2)]
    limits = Limits(run_bytes=run_bytes)
    once = local_join(tmp_path / "once", limits)
    once.step(0, batches[0])
    twice = local_join(tmp_path / "twice", limits)
    attempt = twice.engine.begin(0)
    sent, _ = twice._sent(batches[0], attempt.parts[0].state.route)
    rows = sent.combine_chunks()
    backwards = rows.take(pa.array(np.arange(len(rows))[::-1]))
    results = []
    for order in (rows, backwards):
        pieces = order.to_batches(max_chunksize=16)
        results.append(pa.Table.from_batches(attempt.parts[0].task.run(0, iter(pieces))))
    twice.engine.finish(attempt, {})
    assert_same_rows(results[1], results[0])
    assert state_of(twice) == state_of(once)
    live = {s.name for s in twice.engine._last.operators[0].segments}
    on_disk = {p.name for p in (tmp_path / "twice" / "segments").rglob("*.arrow")}
    assert on_disk == live, "what the first run wrote is gone"

    twice.sink[0] = results[1]
    for number in (1, 2):
        twice.step(number, batches[number])
    expected = join_oracle(
        batches,
        on=[("k", "k")],
        time=("lt", "rt"),
        within=("-3 seconds", "3 seconds"),
        watermark=("5 seconds", "5 seconds"),
    )
    assert_same_rows(twice.rows(), expected)


def test_a_bad_row_of_the_right_is_shown_with_its_key_and_a_far_time(tmp_path: Path) -> None:
    far = 2**61
    right = pa.table([["x"], pa.array([far]).cast(STAMP), [7]], schema=SCHEMAS[1])
    joined = local_join(tmp_path)
    rows = joined._normalise(RIGHT, right).to_batches()
    with pytest.raises(BadRowError) as refused:
        list(joined.engine.begin(0).parts[0].task.run(0, iter(rows)))
    assert "the right input" in str(refused.value)
    assert f"{{'k': 'x', 'rt': '{far} µs', 'b': 7}}" in str(refused.value)
