"""User functions without Spark: each key's rows once, in event-time order, with its own state."""

import tempfile
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.engine.chunks import Limits
from skewless.errors import SkewlessError
from skewless.failures import FunctionError
from skewless.operators.keyed.arranging import batch_schema
from skewless.operators.keyed.layout import Layout
from skewless.operators.keyed.process import Function, infer_schemas
from skewless.operators.keyed.windows import SessionWindow, Windows
from skewless.planning.hash import Hash
from skewless.testing import POINTS, Fault
from skewless.testing.local_keyed import LocalKeyed

from .cases import SCHEMA, SECOND, Restless, batches, delays, poor_hash, routes, table, windows
from .oracle import MARK, on_time
from .test_self_join import SMALL, numbered

KEYS = ["k", "g"]
HISTORY = pa.schema([("k", pa.string()), ("g", pa.int32()), ("id", pa.int64()), ("n", pa.int64())])
SEEN = pa.schema([("k", pa.string()), ("g", pa.int32()), ("ids", pa.list_(pa.int64()))])


def remember(batch: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    """Gives every row with how many rows its key had before it, and keeps all ids of a key.

    A key that has seen more than six rows is forgotten.
    """
    seen: dict[tuple, list[int]] = defaultdict(list)
    if state is not None:
        for row in state.to_pylist():
            assert (row["k"], row["g"]) not in seen, "a key's state comes once"
            seen[row["k"], row["g"]] = list(row["ids"])
    out: list[dict[str, Any]] = []
    for row in batch.to_pylist():
        mine = seen[row["k"], row["g"]]
        out.append({"k": row["k"], "g": row["g"], "id": row["id"], "n": len(mine)})
        mine.append(row["id"])
    kept = [{"k": k, "g": g, "ids": ids} for (k, g), ids in seen.items() if len(ids) <= 6]
    return pa.Table.from_pylist(out, HISTORY), pa.Table.from_pylist(kept, SEEN)


def runner_of(directory: str, process: Function, window=None, delay=0, **options) -> LocalKeyed:
    runner = options.pop("runner", LocalKeyed)
    options.setdefault("policy", Hash(3))
    delay_us = None if delay is None else delay * SECOND
    return runner(directory, SMALL, KEYS, "t", process, window, delay_us, **options)


def check_remembered(made: list[pa.Table], delay: int | None, faults=(), **options) -> None:
    made = numbered(made)
    with tempfile.TemporaryDirectory() as directory:
        process = Function(remember, *infer_schemas(remember, SMALL))
        runner = runner_of(directory, process, None, delay, **options)
        runner.run(made, faults)
    seen: dict[tuple, list[int]] = defaultdict(list)
    delay_us = None if delay is None else delay * SECOND
    for number, (rows, _) in enumerate(on_time(made, delay_us)):
        times = {row["id"]: row["t"] for row in rows.to_pylist()}
        found: dict[tuple, list[dict]] = defaultdict(list)
        for row in runner.sink[number].to_pylist():
            found[row["k"], row["g"]].append(row)
        given_ids = sorted(r["id"] for mine in found.values() for r in mine)
        assert given_ids == sorted(times), "every row once"
        for key, mine in found.items():
            assert [r["n"] for r in mine] == list(range(len(seen[key]), len(seen[key]) + len(mine)))
            in_order = [times[r["id"]] for r in mine]
            assert in_order == sorted(in_order)
            seen[key] += [r["id"] for r in mine]
            if len(seen[key]) > 6:
                seen[key] = []


@given(made=batches(), delay=st.one_of(st.none(), delays))
@settings(max_examples=50)
def test_rows_come_once_in_order_and_state_is_kept_and_forgotten(made, delay) -> None:
    check_remembered(made, delay)


@given(made=batches(), delay=delays)
@settings(max_examples=30)
def test_colliding_hashes_change_nothing(made, delay) -> None:
    check_remembered(made, delay, hash_keys=poor_hash)


# Far below what the rows of a batch take: every array needs large offsets or several pieces.
TIGHT = Limits(run_bytes=300, chunk_bytes=150, array_bytes=200)


@given(made=batches(), delay=delays)
@settings(max_examples=30)
def test_rows_and_state_that_no_array_holds_change_nothing(made, delay) -> None:
    check_remembered(made, delay, limits=TIGHT)


@given(
    made=batches(),
    delay=delays,
    ways=st.lists(routes(most_members=1), min_size=1, max_size=4),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 5)), max_size=2),
)
@settings(max_examples=50)
def test_a_route_that_changes_every_batch_changes_nothing(made, delay, ways, kills) -> None:
    in_order = sorted(kills, key=lambda k: k[1])
    faults = tuple(Fault(point, batch) for point, batch in in_order if batch < len(made))
    Restless.ways = tuple(ways)
    check_remembered(made, delay, faults, runner=Restless)


def test_state_lives_through_many_merges(tmp_path) -> None:
    made = [[("x", 0, n, 1)] if n % 3 else [("y", 0, n, 1)] for n in range(60)]
    runner = runner_of(str(tmp_path), Function(remember, HISTORY, SEEN), policy=Hash(1))
    runner.run(numbered([table(rows) for rows in made]))
    counts = [runner.sink[n].column("n")[0].as_py() for n in range(60)]
    # Each key counts its own rows from 0 to 6 and is then forgotten.
    assert [c for n, c in enumerate(counts) if n % 3 == 0] == [i % 7 for i in range(20)]
    assert [c for n, c in enumerate(counts) if n % 3] == [i % 7 for i in range(40)]
    states = [p["operators"][0]["state"] for p in runner.progress]
    assert max(s["merged"] for s in states) > 0
    assert max(s["segments"] for s in states) <= 24
    assert states[-1]["rows"] <= 24, "old versions and marks of what is gone are merged away"


WINDOWED = pa.schema(
    [("k", pa.string()), ("g", pa.int32()), ("end", pa.int64()), ("id", pa.int64())]
)


def list_rows(batch: pa.Table, state: pa.Table | None) -> tuple[pa.Table, None]:
    assert state is None
    ends = pa.array(
        [row["end"] for row in batch.column("window").to_pylist()], SMALL.field("t").type
    )
    return pa.table(
        [batch.column("k"), batch.column("g"), ends.cast(pa.int64()), batch.column("id")],
        schema=WINDOWED,
    ), None


@given(
    made=batches(),
    window=windows,
    delay=delays,
    ways=st.lists(routes(1), min_size=1, max_size=3),
    limits=st.sampled_from([Limits(), TIGHT]),
)
@settings(max_examples=60)
def test_a_window_is_given_once_when_it_closes_with_all_its_rows(
    made, window, delay, ways, limits
) -> None:
    made = numbered(made)
    Restless.ways = tuple(ways)
    with tempfile.TemporaryDirectory() as directory:
        process = Function(list_rows, WINDOWED)
        runner = runner_of(directory, process, window, delay, runner=Restless, limits=limits)
        found = runner.run(made).to_pylist()
    kept = list(on_time(made, delay * SECOND, window))
    mark = kept[-1][1]
    rows = pa.concat_tables(r for r, _ in kept)
    times = dict(zip(rows["id"].to_pylist(), rows["t"].cast(pa.int64()).to_pylist(), strict=True))
    expected = []
    for row in rows.to_pylist():
        moment = times[row["id"]]
        end = moment - moment % window.slide_us + window.size_us
        while end > moment:
            if end <= mark and (row[MARK] is None or end > row[MARK]):
                expected.append((row["k"], row["g"], end, row["id"]))
            end -= window.slide_us
    as_rows = [(r["k"], r["g"], r["end"], r["id"]) for r in found]
    assert sorted(as_rows, key=repr) == sorted(expected, key=repr)
    by_window: dict[tuple, list[int]] = defaultdict(list)
    for row in as_rows:
        by_window[row[:3]].append(times[row[3]])
    assert all(moments == sorted(moments) for moments in by_window.values())


def count_in_window(batch: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    """How many rows each (key, window) has seen, by state that the window belongs to."""
    old = {}
    if state is not None:
        old = {(r["k"], r["g"], str(r["window"])): r["n"] for r in state.to_pylist()}
    counts: dict[tuple, dict] = {}
    for row in batch.to_pylist():
        key = (row["k"], row["g"], str(row["window"]))
        entry = counts.setdefault(key, {**row, "n": old.get(key, 0)})
        entry["n"] += 1
    schema = pa.schema([*KEYED_STATE])
    kept = pa.Table.from_pylist([{n: e[n] for n in schema.names} for e in counts.values()], schema)
    return kept, kept


LAYOUT = Layout(SMALL, ("k", "g"), "t", ("id",))
KEYED_STATE = [
    ("k", pa.string()),
    ("g", pa.int32()),
    ("window", LAYOUT.window_type),
    ("n", pa.int64()),
]


@given(made=batches(), window=windows, delay=delays, limits=st.sampled_from([Limits(), TIGHT]))
@settings(max_examples=40)
def test_state_of_a_window_in_update_mode(made, window, delay, limits) -> None:
    made = numbered(made)
    schemas = infer_schemas(count_in_window, batch_schema(LAYOUT, window))
    with tempfile.TemporaryDirectory() as directory:
        process = Function(count_in_window, *schemas)
        runner = runner_of(directory, process, window, delay, mode="update", limits=limits)
        runner.run(made)
    seen: dict[tuple, int] = defaultdict(int)
    for number, (rows, _) in enumerate(on_time(made, delay * SECOND, window)):
        touched = set()
        moments = rows["t"].cast(pa.int64()).to_pylist()
        for row, moment in zip(rows.to_pylist(), moments, strict=True):
            end = moment - moment % window.slide_us + window.size_us
            while end > moment:
                if row[MARK] is None or end > row[MARK]:
                    seen[row["k"], row["g"], end] += 1
                    touched.add((row["k"], row["g"], end))
                end -= window.slide_us
        shown = runner.sink[number]
        ends = [w["end"] for w in shown["window"].to_pylist()]
        ends = pa.array(ends, SMALL.field("t").type).cast(pa.int64()).to_pylist()
        found = {
            (k, g, e): n
            for k, g, e, n in zip(
                shown["k"].to_pylist(),
                shown["g"].to_pylist(),
                ends,
                shown["n"].to_pylist(),
                strict=True,
            )
        }
        assert found == {key: seen[key] for key in touched}


def one_row() -> pa.Table:
    return numbered([table([("x", 0, 1, 1)])])[0]


def test_much_text_comes_in_several_chunks_of_the_declared_type(tmp_path) -> None:
    """And much state becomes several segments; what a function gives comes in pieces."""
    kind = pa.schema([("k", pa.string()), ("t", SMALL.field("t").type), ("text", pa.string())])
    state = pa.schema([("k", pa.string()), ("text", pa.string())])
    seen: list[tuple[pa.Table, pa.Table | None]] = []

    def keep(batch: pa.Table, kept: pa.Table | None) -> tuple[pa.Table, pa.Table]:
        seen.append((batch, kept))
        large = pa.schema([("k", pa.large_string()), ("text", pa.large_string())])
        everything = batch.select(["k", "text"]).cast(large)
        return everything.combine_chunks(), everything.combine_chunks()

    limits = Limits(run_bytes=4_000, chunk_bytes=3_000, array_bytes=5_000)
    process = Function(keep, state, state)
    runner = LocalKeyed(
        str(tmp_path), kind, ["k"], "t", process, policy=Hash(1), limits=limits, delay_us=None
    )
    rows = [
        {"k": f"key {n % 7}", "t": SECOND * n, "text": str(n) * 200 if n % 3 else None}
        for n in range(60)
    ]
    table = pa.Table.from_pylist(rows, kind)
    runner.run([table, table])
    for batch, kept in seen:
        assert batch.schema.equals(kind)
        assert batch.column("text").num_chunks > 2
        assert batch.num_rows == 60
        assert kept is not None
        assert kept.schema.equals(state)
    assert seen[0][1].num_rows == 0
    assert seen[1][1].column("text").num_chunks > 2

    def plain(found: pa.Table) -> list[tuple]:
        return sorted((r["k"], r["text"] or "") for r in found.to_pylist())

    assert plain(seen[1][1]) == plain(table)
    assert plain(runner.sink[1]) == plain(table)
    assert max(len(c) for c in runner.sink[1].column("text").chunks) < 20
    assert runner.progress[0]["operators"][0]["state"]["segments"] > 2


def test_what_a_function_raises_is_told_with_its_place(tmp_path) -> None:
    def look_up(name: str) -> Any:
        return {}[name]

    def broken(batch: pa.Table, state: pa.Table | None) -> Any:
        return look_up("amount")

    runner = runner_of(str(tmp_path), Function(broken, HISTORY), policy=Hash(1))
    with pytest.raises(FunctionError) as told:
        runner.step(0, one_row())
    lines = str(told.value).splitlines()
    assert lines[0] == "KeyError: 'amount'"
    assert [line.split(", in ")[1] for line in lines if line.startswith("  File")] == [
        "broken",
        "look_up",
    ]
    assert "test_function.py" in lines[1]
    assert lines[2].strip() == 'return look_up("amount")'
    name = broken.__qualname__
    assert lines[-1] == (
        f"process: {name} failed on 1 row of the key {{'k': 'x', 'g': 0}} (instance 0, batch 0)"
    )
    two = numbered([table([("x", 0, 1, 1), ("y", 0, 1, 1), ("y", 0, 2, 1)])])[0]
    with pytest.raises(FunctionError, match=r"failed on 3 rows of 2 keys \(instance 0, batch 0\)"):
        runner.step(0, two)


STRICT = pa.schema(
    [
        pa.field("k", pa.string(), nullable=False),
        ("amount", pa.decimal128(10, 0)),
        ("share", pa.float32()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


@pytest.mark.parametrize(
    ("column", "given"),
    [
        ("amount", pa.array([1.5])),
        ("share", pa.array([1e300])),
        ("at", pa.array([5])),
        ("k", pa.array([None], pa.string())),
    ],
)
@pytest.mark.parametrize("what", ["out", "state"])
def test_what_would_be_changed_is_refused(what, column, given, tmp_path) -> None:
    """As strictly as the results of a map."""
    good = {
        "k": pa.array(["x"]),
        "amount": pa.array([2.0]),
        "share": pa.array([0.5]),
        "at": pa.array([None], pa.timestamp("us", "UTC")),
    }
    result = pa.table({**good, column: given})

    def fn(batch: pa.Table, state: pa.Table | None) -> Any:
        return (result, None) if what == "out" else (None, result)

    runner = LocalKeyed(
        str(tmp_path), SMALL, ["k"], "t", Function(fn, STRICT, STRICT), policy=Hash(1)
    )
    says = rf"process: .*fn returned {what} .*\(instance 0, batch 0\): column '{column}': "
    with pytest.raises(SkewlessError, match=says):
        runner.step(0, one_row())
    result = pa.table(good)
    runner.step(0, one_row())
    if what == "out":
        assert runner.rows().schema.equals(STRICT)


@pytest.mark.parametrize(
    ("given", "state_schema", "message"),
    [
        (None, None, r"must return \(out, state\)"),
        (
            (pa.table({"z": [1]}), None),
            None,
            r"returned out .*unknown column 'z'.*declares k, g, id",
        ),
        (([1], None), None, r"returned out of type list.*takes a table of"),
        ((pa.table({"k": ["x"]}), None), None, r"returned out .*no column 'g'"),
        ((None, SEEN.empty_table()), None, r"none was declared.*state_schema="),
        ((pa.table({"k": ["x"], "g": [0], "id": ["no"], "n": [1]}), None), None, "column 'id'"),
        (
            (None, pa.Table.from_pylist([{"k": "stranger", "g": 0, "ids": []}], SEEN)),
            SEEN,
            r"not in its batch.*stranger",
        ),
    ],
)
def test_what_a_function_gives_wrongly_is_refused(given, state_schema, message, tmp_path) -> None:
    process = Function(lambda batch, state: given, HISTORY, state_schema)
    runner = runner_of(str(tmp_path), process)
    with pytest.raises(SkewlessError, match=message):
        runner.step(0, one_row())
    assert not list((tmp_path / "commits").iterdir()), "nothing is committed"


def test_a_closed_window_keeps_no_state(tmp_path) -> None:
    def keeps(batch: pa.Table, state: pa.Table | None) -> Any:
        assert state is None
        return None, batch.select(["k", "g", "window"])

    schema = pa.schema([("k", pa.string()), ("g", pa.int32()), ("window", LAYOUT.window_type)])
    process = Function(keeps, HISTORY, schema)
    runner = runner_of(str(tmp_path), process, Windows(SECOND, SECOND))
    batches = [
        [("x", 0, 1, 1), ("x", 0, 9, 1)],
        [("x", 0, 9_000_000, 1)],
        [("x", 0, 20_000_000, 1)],
    ]
    runner.run(numbered([table(rows) for rows in batches]))
    assert runner.progress[-1]["operators"][0]["state"]["rows"] <= 2, "rows that wait, no state"


def test_refused_before_anything_runs(tmp_path) -> None:
    with pytest.raises(SkewlessError, match=r"window.*a duration or None"):
        runner_of(str(tmp_path), Function(remember, HISTORY), SessionWindow("1 second"))
    lacking = pa.schema([("k", pa.string()), ("n", pa.int64())])
    with pytest.raises(SkewlessError, match=r"state_schema: lacks \['g'\]"):
        runner_of(str(tmp_path), Function(remember, HISTORY, lacking))


def test_what_an_empty_call_cannot_tell_is_said() -> None:
    with pytest.raises(SkewlessError, match=r"'n' has no type.*schema="):
        infer_schemas(lambda batch, state: (pa.table({"n": []}), None), SCHEMA)
    with pytest.raises(SkewlessError, match="a state of type dict"):
        infer_schemas(lambda batch, state: (batch, {}), SCHEMA)


def test_schemas_are_found_by_an_empty_call() -> None:
    assert infer_schemas(remember, SMALL) == (HISTORY, SEEN)
    with pytest.raises(SkewlessError, match="give schema="):
        infer_schemas(lambda batch, state: (None, None), SCHEMA)
    with pytest.raises(SkewlessError, match=r"raised IndexError.*give schema= and state_schema="):
        infer_schemas(lambda batch, state: (batch.slice(0, batch.to_pylist()[0]), None), SCHEMA)
