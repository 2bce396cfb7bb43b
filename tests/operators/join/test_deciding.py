"""What a task decides alone must not depend on how its input falls into pieces."""

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import Limits
from skewless.operators.join.bounds import Bounds
from skewless.planning.hash import Hash
from tests.operators.join.test_join_local import one_hot_key
from tests.operators.join.test_outer_local import LEFT, RIGHT, local


def given_and_stored(directory, limits: Limits, order: np.ndarray) -> tuple[int, int]:
    """The rows that a task gives, and those that it stores, of the same rows in some order."""
    left, right = one_hot_key(50)
    lone = left.set_column(0, "k", pa.array([f"lone {n}" for n in range(50)]))
    later = [
        t.slice(0, 1).set_column(
            2,
            t.column_names[2],
            pa.array([t.column(2)[0].as_py().replace(hour=9)], t.schema[2].type),
        )
        for t in (left, right)
    ]
    tables = (pa.concat_tables([lone, left, later[0]]), pa.concat_tables([right, later[1]]))
    joined = local(directory, bounds=Bounds(0, 0), how="left_anti", policy=Hash(1), limits=limits)
    attempt = joined.engine.begin(0)
    rows, _ = joined._sent(tables, attempt.parts[0].state.route)
    rows = rows.take(pa.array(order[: rows.num_rows]))
    batches = rows.combine_chunks().to_batches(max_chunksize=10)
    given = sum(batch.num_rows for batch in attempt.parts[0].task.run(0, iter(batches)))
    after = joined.engine.settle(attempt).state
    return given, sum(s.rows for s in after.segments if s.side == "left")


def test_two_runs_of_a_task_decide_alike(tmp_path) -> None:
    assert LEFT.names[0] == RIGHT.names[0] == "k"
    rows = 50 + 50 + 1 + 50 + 1
    orders = [np.arange(rows), np.arange(rows)[::-1].copy()]
    whole = {given_and_stored(tmp_path / f"w{n}", Limits(), o) for n, o in enumerate(orders)}
    assert whole == {(50, 0)}, "rows that the task's own watermark has passed are given at once"
    cut = {
        given_and_stored(tmp_path / f"c{n}", Limits(run_bytes=2_000), o)
        for n, o in enumerate(orders)
    }
    assert {given for given, _ in cut} == {0}, "in pieces, all is left to the emission"
