"""The self-join without Spark, against every pair looked at: each once, the earlier on the left."""

import tempfile
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.engine.chunks import Limits
from skewless.errors import SkewlessError
from skewless.operators.keyed.process import SelfJoin
from skewless.operators.keyed.windows import Windows
from skewless.planning.hash import Hash
from skewless.testing import POINTS, Fault
from skewless.testing.local_keyed import LocalKeyed

from .cases import SCHEMA, SECOND, Restless, batches, delays, poor_hash, routes, table
from .oracle import on_time

COLUMNS = ["k", "t", "g", "id"]
SMALL = pa.schema([SCHEMA.field("k"), SCHEMA.field("t"), SCHEMA.field("g"), ("id", pa.int64())])


def numbered(made: list[pa.Table]) -> list[pa.Table]:
    """Every row with a number of its own, so that pairs can be told apart."""
    out, first = [], 0
    for batch in made:
        ids = pa.array(range(first, first + batch.num_rows), pa.int64())
        out.append(batch.select(["k", "t", "g"]).append_column("id", ids))
        first += batch.num_rows
    return out


def pairs_of(rows: list[dict], within: int) -> Counter:
    found: Counter = Counter()
    for i, a in enumerate(rows):
        for b in rows[i + 1 :]:
            same = (
                a["k"] is not None and a["g"] is not None and (a["k"], a["g"]) == (b["k"], b["g"])
            )
            if same and abs((a["t"] - b["t"]).total_seconds()) <= within:
                found[frozenset((a["id"], b["id"]))] += 1
    return found


def check(made: list[pa.Table], within: int, delay: int | None, faults=(), **options) -> None:
    made = numbered(made)
    delay_us = None if delay is None else delay * SECOND
    runner = options.pop("runner", LocalKeyed)
    options.setdefault("policy", Hash(3))
    process = SelfJoin(f"{within} seconds")
    with tempfile.TemporaryDirectory() as directory:
        joined = runner(directory, SMALL, ["k", "g"], "t", process, None, delay_us, **options)
        found = joined.run(made, faults).to_pylist()
    assert joined.operator.output_schema.names == ["k", "g", "t", "id", "t_right", "id_right"]
    kept = pa.concat_tables(rows for rows, _ in on_time(made, delay_us)).to_pylist()
    times = {row["id"]: row["t"] for row in kept}
    assert Counter(frozenset((r["id"], r["id_right"])) for r in found) == pairs_of(kept, within)
    for row in found:
        assert (row["t"], row["t_right"]) == (times[row["id"]], times[row["id_right"]])
        assert row["t"] <= row["t_right"], "the earlier row is on the left"


@given(made=batches(), within=st.integers(0, 20), delay=st.one_of(st.none(), delays))
@settings(max_examples=60)
def test_the_pairs_equal_brute_force(made, within, delay) -> None:
    check(made, within, delay)


@given(made=batches(), within=st.integers(0, 20), delay=delays)
@settings(max_examples=30)
def test_colliding_hashes_change_nothing(made, within, delay) -> None:
    check(made, within, delay, hash_keys=poor_hash)


@given(made=batches(), within=st.integers(0, 20), delay=delays)
@settings(max_examples=30)
def test_small_runs_and_chunks_change_nothing(made, within, delay) -> None:
    check(made, within, delay, limits=Limits(run_bytes=1, chunk_bytes=1, chunk_rows=1))


@given(
    made=batches(),
    within=st.integers(0, 20),
    delay=delays,
    ways=st.lists(routes(most_members=1), min_size=1, max_size=4),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 5)), max_size=2),
)
@settings(max_examples=50)
def test_a_route_that_changes_every_batch_changes_nothing(made, within, delay, ways, kills) -> None:
    in_order = sorted(kills, key=lambda k: k[1])
    faults = tuple(Fault(point, batch) for point, batch in in_order if batch < len(made))
    Restless.ways = tuple(ways)
    check(made, within, delay, faults, runner=Restless)


def test_rows_leave_the_state(tmp_path) -> None:
    made = numbered([table([("x", 0, 0, 1)] * 5, 3 * n) for n in range(60)])
    joined = LocalKeyed(str(tmp_path), SMALL, ["k", "g"], "t", SelfJoin("10 seconds"))
    joined.run(made)
    states = [p["operators"][0]["state"] for p in joined.progress]
    # A watermark of 10 seconds and 3 more: four batches of five rows, and what a merge leaves.
    assert max(s["rows"] for s in states) <= 40
    assert max(s["segments"] for s in states) <= 12


def test_null_keys_are_counted_and_match_nothing(tmp_path) -> None:
    joined = LocalKeyed(str(tmp_path), SMALL, ["k", "g"], "t", SelfJoin("10 seconds"))
    found = joined.run(numbered([table([(None, 0, 1, 1), (None, 0, 1, 2), ("x", None, 1, 1)])]))
    assert found.num_rows == 0
    assert joined.progress[0]["operators"][0]["nullKeys"] == 3
    assert joined.progress[0]["operators"][0]["state"]["rows"] == 0


def test_a_hot_key_never_exists_in_all_its_pairs_at_once(tmp_path) -> None:
    made = numbered([table([("x", 0, 1, 1)] * 2000)])
    joined = LocalKeyed(str(tmp_path), SMALL, ["k", "g"], "t", SelfJoin("0 seconds"))
    attempt = joined.engine.begin(0)
    rows = joined._normalise(made[0]).combine_chunks().to_batches()
    sizes = [chunk.num_rows for chunk in attempt.parts[0].task.run(0, iter(rows))]
    assert sum(sizes) == 2000 * 1999 // 2
    assert max(sizes) <= joined.limits.chunk_rows


def test_a_window_and_a_suffix_that_is_taken_are_refused(tmp_path) -> None:
    window = Windows(SECOND, SECOND)
    with pytest.raises(SkewlessError, match="window"):
        LocalKeyed(str(tmp_path), SMALL, ["k", "g"], "t", SelfJoin("1 second"), window)
    taken = SMALL.append(pa.field("id_right", pa.int64()))
    with pytest.raises(SkewlessError, match=r"suffix.*id_right"):
        LocalKeyed(str(tmp_path), taken, ["k", "g"], "t", SelfJoin("1 second"))
