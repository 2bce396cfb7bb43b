"""The join without Spark, against DuckDB: whatever the batches, bounds, hashes and kills are."""

import errno
import resource
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.control.loop import Balance
from skewless.engine.badrows import BadRowError
from skewless.engine.chunks import Limits
from skewless.operators.join.bounds import Bounds
from skewless.planning.hash import Hash
from skewless.routing.route import Route
from skewless.state.storage import StateError
from skewless.state.watermark import Delays
from skewless.testing import POINTS, Fault, LocalJoin, assert_same_rows, join_oracle
from skewless.testing.local import spread_hash
from tests.routing.cases import routes

LEFT = pa.schema(
    [("k", pa.string()), ("g", pa.int32()), ("lt", pa.timestamp("us", "UTC")), ("a", pa.int64())]
)
RIGHT = pa.schema(
    [("k", pa.string()), ("g", pa.int32()), ("rt", pa.timestamp("us", "UTC")), ("b", pa.string())]
)
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)

# Few distinct values, so that ties, duplicates, boundary hits and late rows are common.
keys = st.sampled_from(["", "x", "y", "hot", "hot", "hot", None])
groups = st.sampled_from([0, 0, 0, 1, None])
seconds = st.integers(0, 40)


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[pa.Table, pa.Table]]:
    count = draw(st.integers(1, 5))
    made = []
    for number in range(count):
        rows = []
        for time, payload in (("lt", "a"), ("rt", "b")):
            drawn = draw(st.lists(st.tuples(keys, groups, seconds), max_size=14))
            rows.append(
                [
                    {"k": k, "g": g, time: EPOCH + timedelta(seconds=s + 8 * number), payload: v}
                    for v, (k, g, s) in enumerate(drawn)
                ]
            )
        for i, row in enumerate(rows[0]):
            row["a"] = 100 * number + i
        for i, row in enumerate(rows[1]):
            row["b"] = f"r{100 * number + i}"
        made.append((pa.Table.from_pylist(rows[0], LEFT), pa.Table.from_pylist(rows[1], RIGHT)))
    return made


bounds = st.one_of(
    st.tuples(st.integers(-20, 20), st.integers(-20, 20)).map(sorted).map(tuple),
    st.tuples(st.none(), st.integers(-10, 10)),
    st.tuples(st.integers(-10, 10), st.none()),
    st.just((None, None)),
)
delays = st.tuples(*[st.one_of(st.none(), st.integers(0, 15))] * 2)


def poor_hash(table: pa.Table) -> np.ndarray:
    """Collides: all keys share three hashes, and the keys must tell them apart."""
    lengths = [len(str(row)) % 3 for row in zip(*table.to_pydict().values(), strict=True)]
    return np.array(lengths, np.uint64) << np.uint64(62)


def text(number: int | None) -> str | None:
    return None if number is None else f"{number} seconds"


def local(directory: object, **options: object) -> LocalJoin:
    """Joins on `k` and `g` where the event times are equal, unless the options say otherwise."""
    join = options.pop("join", LocalJoin)
    given = {
        "on": ["k", "g"],
        "time": ("lt", "rt"),
        "bounds": Bounds(0, 0),
        "delays": Delays({"left": 0, "right": 0}),
        "left_schema": LEFT,
        "right_schema": RIGHT,
    }
    return join(str(directory), **{**given, **options})


def run(
    directory: object,
    made: list[tuple[pa.Table, pa.Table]],
    within: tuple[int | None, int | None],
    late: tuple[int | None, int | None],
    *,
    instances: int = 3,
    faults: tuple[Fault, ...] = (),
    **options: object,
) -> LocalJoin:
    micro = [None if x is None else x * 1_000_000 for x in (*within, *late)]
    joined = local(
        directory,
        bounds=Bounds(micro[0], micro[1]),
        delays=Delays({"left": micro[2], "right": micro[3]}),
        policy=Hash(instances),
        **options,
    )
    found = joined.run(made, faults)
    expected = join_oracle(
        made,
        on=[("k", "k"), ("g", "g")],
        time=("lt", "rt"),
        within=(text(within[0]), text(within[1])),
        watermark=(text(late[0]), text(late[1])),
    )
    assert_same_rows(found, expected)
    assert sum(p["operators"][0]["matches"] for p in joined.progress) >= expected.num_rows
    return joined


@given(made=batches(), within=bounds, late=delays, instances=st.integers(1, 4))
@settings(max_examples=100)
def test_the_join_equals_the_oracle(made, within, late, instances) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, within, late, instances=instances)


@given(made=batches(), within=bounds, late=delays)
@settings(max_examples=40)
def test_colliding_hashes_change_nothing(made, within, late) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, within, late, hash_keys=poor_hash)


@given(made=batches(), within=bounds, late=delays)
@settings(max_examples=40)
def test_small_runs_and_chunks_change_nothing(made, within, late) -> None:
    """A batch that must be sorted in many pieces, and pairs handed over one at a time."""
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, within, late, limits=Limits(run_bytes=1, chunk_bytes=1, chunk_rows=1))


def faults_of(kills: list[tuple[str, int]], batches: int) -> tuple[Fault, ...]:
    in_order = sorted(kills, key=lambda kill: kill[1])
    return tuple(Fault(point, batch) for point, batch in in_order if batch < batches)


@given(
    made=batches(),
    within=bounds,
    late=delays,
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 4)), max_size=4),
)
@settings(max_examples=50)
def test_kills_change_nothing(made, within, late, kills) -> None:
    faults = faults_of(kills, len(made))
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, within, late, faults=faults)


HOT = spread_hash(
    pa.table({"k": ["", "x", "y", "hot"], "g": pa.array([0] * 4, pa.int32())})
).tolist()


class Restless(LocalJoin):
    """Takes another route in every batch, whatever the policy says."""

    ways: tuple[Route, ...] = ()

    def step(self, number, batch) -> None:
        way = self.ways[number % len(self.ways)]
        plain = self.engine.operators[0].adopt

        def adopt(state, cores):
            planner = {**state.planner, "balance": Balance.initial(way.instances).to_json()}
            return replace(state, route=way, planner=planner)

        object.__setattr__(self.engine.operators[0], "adopt", adopt)
        try:
            super().step(number, batch)
        finally:
            object.__setattr__(self.engine.operators[0], "adopt", plain)


@given(
    made=batches(),
    within=bounds,
    late=delays,
    ways=st.lists(routes(HOT, most=5, partitions=(5, 16)), min_size=1, max_size=4),
    small=st.booleans(),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 4)), max_size=2),
)
@settings(max_examples=100)
def test_a_route_that_changes_every_batch_changes_nothing(
    made, within, late, ways, small, kills
) -> None:
    faults = faults_of(kills, len(made))
    limits = Limits(run_bytes=1, chunk_bytes=1, chunk_rows=1) if small else Limits()
    Restless.ways = tuple(ways)
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, within, late, faults=faults, join=Restless, limits=limits)


def test_many_batches_are_compacted_and_forgotten(tmp_path) -> None:
    """Eighty batches in a window of forty: merged, expired, and still equal to the oracle."""
    rng = np.random.default_rng(5)
    made = []
    for number in range(80):
        sides = []
        for schema, time, payload in ((LEFT, "lt", "a"), (RIGHT, "rt", "b")):
            size = 30
            rows = {
                "k": rng.choice(["x", "y", "z"], size),
                "g": rng.integers(0, 3, size),
                time: [
                    EPOCH + timedelta(seconds=int(s) + 2 * number) for s in rng.integers(0, 3, size)
                ],
                payload: [number * 100 + i for i in range(size)],
            }
            if payload == "b":
                rows["b"] = [str(v) for v in rows["b"]]
            sides.append(pa.table(rows).cast(schema))
        made.append((sides[0], sides[1]))
    joined = run(tmp_path, made, (-40, 40), (3, 3), instances=2)
    states = [p["operators"][0]["state"] for p in joined.progress]
    assert max(s["merged"] for s in states) > 0, "compaction never ran"
    assert max(s["segments"] for s in states) < 80
    assert states[-1]["rows"]["left"] < 80 * 30 / 2, "old rows are not forgotten"
    live = {s.name for s in joined.engine._last.operators[0].segments}
    on_disk = {p.name for p in (tmp_path / "segments").rglob("*.arrow")}
    assert live <= on_disk
    assert len(on_disk) < len(live) + 40, "garbage is not collected"


def test_a_null_time_stops_the_batch_and_names_the_row(tmp_path) -> None:
    left = pa.Table.from_pylist([{"k": "x", "g": 1, "lt": None, "a": 7}], LEFT)
    right = RIGHT.empty_table()
    joined = local(tmp_path)
    with pytest.raises(BadRowError, match=r"left input.*'a': 7.*badRows"):
        joined.step(0, (left, right))
    assert not list((tmp_path / "commits").iterdir()), "nothing is committed"
    dropping = local(tmp_path / "drop", drop_bad_rows=True)
    dropping.step(0, (left, right))
    told = dropping.progress[0]["operators"][0]
    assert told["badRows"] == {"left": 1, "right": 0}
    (sample,) = told["dropped"]
    assert sample["input"] == "left"
    assert sample["reason"].startswith("bad row: its event time is null")
    assert sample["row"]["a"] == 7


def test_floats_as_keys_join_as_in_spark(tmp_path) -> None:
    """−0.0 is 0.0, and NaN is NaN, also where every hash has an instance of its own."""
    left = pa.schema([("x", pa.float64()), ("lt", pa.timestamp("us", "UTC"))])
    right = pa.schema([("x", pa.float64()), ("rt", pa.timestamp("us", "UTC"))])
    joined = local(tmp_path, on=["x"], left_schema=left, right_schema=right, policy=Hash(64))
    values = ([0.0, float("nan")], [-0.0, float("nan")])
    tables = [
        pa.table([v, [EPOCH] * 2], schema=s) for v, s in zip(values, (left, right), strict=True)
    ]
    assert joined.run([tuple(tables)]).num_rows == 2


def test_rows_without_a_key_move_the_watermark(tmp_path) -> None:
    """As any other row with an event time: a row at second 5 is late after one at second 60."""
    moment = [EPOCH + timedelta(seconds=s) for s in (60, 5)]
    joined = local(tmp_path)
    for number, key in enumerate((None, "x")):
        left = pa.table([[key], [1], [moment[number]], [7]], schema=LEFT)
        right = pa.table([[key], [1], [moment[number]], ["p"]], schema=RIGHT)
        joined.step(number, (left, right))
    first, second = (progress["operators"][0] for progress in joined.progress)
    assert first["nullKeys"] == {"left": 1, "right": 1}
    assert first["watermark"] == "2024-01-01T00:01:00Z"
    assert second["late"] == {"left": 1, "right": 1}


def one_hot_key(size: int) -> tuple[pa.Table, pa.Table]:
    moments = [EPOCH] * size
    left = pa.table([["hot"] * size, [1] * size, moments, list(range(size))], schema=LEFT)
    right = pa.table([["hot"] * size, [1] * size, moments, ["payload"] * size], schema=RIGHT)
    return left, right


def test_a_thousand_matches_per_row_never_exist_at_once(tmp_path) -> None:
    joined = local(tmp_path, policy=Hash(1))
    rows = pa.concat_tables(
        joined._normalise(side, t)
        for side, t in zip(("left", "right"), one_hot_key(2000), strict=True)
    )
    attempt = joined.engine.begin(0)
    before = pa.total_allocated_bytes()
    matches, output_bytes, peak = 0, 0, 0
    for chunk in attempt.parts[0].task.run(0, iter(rows.to_batches())):
        matches += chunk.num_rows
        output_bytes += chunk.nbytes
        peak = max(peak, pa.total_allocated_bytes() - before)
        assert chunk.num_rows <= joined.limits.chunk_rows
    assert matches == 2000 * 2000
    assert peak * 10 < output_bytes, f"{peak:,} bytes held for {output_bytes:,} bytes of result"


def test_a_disk_that_takes_no_more_loses_nothing(tmp_path) -> None:
    """Writing a segment fails in the middle; the batch is not committed and can be run again."""
    batch = one_hot_key(500)
    joined = local(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
    try:
        with pytest.raises(StateError, match=r"segments/b0.*arrow: cannot write") as failure:
            joined.step(0, batch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(failure.value.__cause__, OSError)
    assert failure.value.__cause__.errno == errno.EFBIG
    assert not list((tmp_path / "commits").iterdir())
    assert not list((tmp_path / "segments").rglob("*.arrow*")), "no half-written file is left"
    joined.step(0, batch)
    assert joined.rows().num_rows == 500 * 500
