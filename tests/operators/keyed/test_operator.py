"""The keyed operator between batches: what it refuses, plans, adopts and gives out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skewless.errors import SkewlessError
from skewless.operators.keyed.operator import (
    KeyedOperator,
    check_mode,
    default_mode,
    layout_of,
)
from skewless.operators.keyed.process import Agg, Count, Function, SelfJoin
from skewless.operators.keyed.windows import SessionWindow, Windows, window_of
from skewless.planning.auto import Auto
from skewless.planning.contrand import ContRand
from skewless.planning.hash import Hash
from skewless.routing.entries import Entry
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.splits import Split
from skewless.routing.table import TableRoute
from skewless.state.watermark import Delays
from skewless.testing.local_keyed import LocalKeyed

from .cases import SCHEMA, SECOND, table

TUMBLING = Windows(10 * SECOND, 10 * SECOND)


def nothing(batch: pa.Table, state: pa.Table | None) -> tuple[None, None]:
    return None, None


FUNCTION = Function(nothing, SCHEMA)
STATE_OF_NUMBERS = pa.schema([("k", pa.int64()), ("seen", pa.int64())])


def operator(process: Any = None, window: Any = TUMBLING, **options: Any) -> KeyedOperator:
    chosen = Count() if process is None else process
    values: dict[str, Any] = {
        "layout": layout_of(SCHEMA, ["k"], "t", chosen),
        "process": chosen,
        "window": window,
        "delays": Delays({"input": 0}),
        "policy": Hash(2),
        "fingerprint": {},
    }
    return KeyedOperator(**{**values, **options})


@pytest.mark.parametrize(
    ("mode", "process", "window", "delay", "message"),
    [
        ("complete", Count(), TUMBLING, 0, r"outputMode.*'append' or 'update'"),
        ("update", Count(), SessionWindow("1 second"), 0, r"outputMode.*session"),
        ("append", Count(), None, 0, r"outputMode.*without a window"),
        ("append", Agg({"i": "sum"}), TUMBLING, None, r"watermark.*a window must close"),
        ("append", FUNCTION, TUMBLING, None, r"watermark.*a window must close"),
    ],
)
def test_modes_that_could_never_give_anything(mode, process, window, delay, message) -> None:
    with pytest.raises(SkewlessError, match=message):
        check_mode(mode, process, window, delay)


@pytest.mark.parametrize(
    ("mode", "process", "window", "delay"),
    [
        ("append", Count(), TUMBLING, 0),
        ("append", Count(), SessionWindow("1 second"), 0),
        ("update", Count(), None, None),
        ("append", SelfJoin("1 second"), None, None),
        ("append", FUNCTION, None, None),
        ("update", FUNCTION, TUMBLING, None),
    ],
)
def test_modes_that_can(mode, process, window, delay) -> None:
    check_mode(mode, process, window, delay)
    assert default_mode(process, window) == (
        "update" if (process, window) == (Count(), None) else "append"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"process": Agg({"x": ("sum", "nope")})}, "nope"),
        ({"process": Agg({"x": ("sum", "s")})}, "numeric"),
        ({"process": Agg({"k": ("sum", "i")})}, "neither keys nor the window"),
        ({"process": Agg({"window": ("sum", "i")})}, "neither keys nor the window"),
        ({"process": SelfJoin("1 second")}, "window"),
        (
            {"process": Function(nothing, SCHEMA, STATE_OF_NUMBERS), "window": None},
            r"state_schema: got 'k: int64'; takes the type of the key, which is string",
        ),
        ({"delays": Delays({"left": 0, "right": 0})}, "watermark"),
        ({"policy": ContRand(4)}, "balance"),
    ],
)
def test_refused_at_construction(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        operator(**options)


@pytest.mark.parametrize(
    ("by", "time", "message"),
    [
        ([], "t", "by"),
        (["k", "k"], "t", "each column once"),
        (["nope"], "t", "nope"),
        (["k"], "nope", "nope"),
        (["k"], "i", "timestamp"),
        (["t"], "t", "other than the event time"),
    ],
)
def test_columns_are_checked(by: list[str], time: str, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        layout_of(SCHEMA, by, time, Count())


@pytest.mark.parametrize(
    ("window", "slide", "message"),
    [
        ("10 seconds", "11 seconds", "slide"),
        ("0 seconds", None, "window"),
        ("10 seconds", "0 seconds", "slide"),
        (None, "1 second", "slide"),
        (SessionWindow("1 second"), "1 second", "slide"),
    ],
)
def test_windows_are_checked(window, slide, message) -> None:
    with pytest.raises(SkewlessError, match=message):
        window_of(window, slide)
    with pytest.raises(SkewlessError, match="gap"):
        SessionWindow("0 seconds")


def test_tasks_get_no_more_columns_than_they_need() -> None:
    agg = Agg({"total": ("sum", "i"), "last": ("max", "t"), "keys": ("count", "k")})
    assert layout_of(SCHEMA, ["k"], "t", agg).payload == ("i",)
    assert layout_of(SCHEMA, ["k"], "t", Count()).payload == ()
    assert layout_of(SCHEMA, ["k"], "t", SelfJoin("1 second")).payload == ("g", "i", "f", "d", "s")


def test_the_output_is_that_of_sparks_group_by() -> None:
    schema = operator(Agg({"i": "sum", "d": "avg", "*": "count"})).output_schema
    moment = pa.timestamp("us", "UTC")
    assert schema == pa.schema(
        [
            ("window", pa.struct([("start", moment), ("end", moment)])),
            ("k", pa.string()),
            ("sum(i)", pa.int64()),
            ("avg(d)", pa.decimal128(14, 6)),
            ("count(1)", pa.int64()),
        ]
    )


@pytest.mark.parametrize(
    ("process", "window", "kept"),
    [
        (Count(), TUMBLING, [("hot", (0, 1)), ("own", (1,))]),
        (SelfJoin("1 second"), None, [("own", (1,))]),
        (FUNCTION, None, [("own", (1,))]),
        (Count(), None, [("own", (1,))]),
    ],
)
def test_splits_of_several_members_are_for_what_can_be_combined(process, window, kept) -> None:
    hashes = {"hot": 2**63, "own": 5}
    places = partition_of(np.array(list(hashes.values()), np.uint64), 4).tolist()
    entry = Entry(hashes["own"], places[1], (1,))
    split = Split(hashes["hot"], places[0], (0, 1), 1)
    one = operator(process, window, mode=default_mode(process, window))
    allowed = one._allowed(TableRoute(PartitionTable(2, (0, 1, 0, 1)), (entry,), (split,)))
    found = [(s.hash, s.members) for s in (*allowed.splits, *allowed.entries)]
    assert found == [(hashes[n], m) for n, m in kept]
    assert {s.columns for s in allowed.splits} <= {1}, "no row of the input is replicated"
    assert one.combinable is one.emits is (window is not None)


def test_without_a_watermark_windows_are_given_as_they_change() -> None:
    tumbling = Windows(SECOND, SECOND)
    assert default_mode(Count(), tumbling, None) == "update"
    assert default_mode(Count(), tumbling, 0) == "append"
    assert default_mode(SelfJoin("1 second"), None, None) == "append"
    assert default_mode(Count(), SessionWindow("1 second"), None) == "append", "and is refused"


def test_there_is_an_emission_only_when_something_is_due(tmp_path) -> None:
    runner = LocalKeyed(str(tmp_path), SCHEMA, ["k", "g"], "t", Count(), TUMBLING)
    due = []
    emission = runner.operator.emission

    def watched(*around):
        made = emission(*around)
        due.append(made is not None)
        return made

    object.__setattr__(runner.operator, "emission", watched)
    runner.run([table([("x", 0, s, 1)]) for s in (1, 5, 9, 10, 11, 35)])
    # Windows end 10 and 20 seconds after the first; the last row closes the second.
    assert due == [False, False, False, True, False, True]


def test_an_emission_may_be_consumed_twice(tmp_path) -> None:
    runner = LocalKeyed(str(tmp_path), SCHEMA, ["k", "g"], "t", Count(), TUMBLING, policy=Hash(1))
    runner.step(0, table([("x", 0, 1, 1), ("y", 0, 2, 1)]))
    attempt = runner.engine.begin(1)
    rows = runner._normalise(table([("x", 0, 30, 1)])).to_batches()
    assert not list(attempt.parts[0].task.run(0, iter(rows)))
    twice = [list(runner._emitted(attempt)) for _ in range(2)]
    assert twice[0] == twice[1]
    assert sum(b.num_rows for b in twice[0]) == 2


def test_another_number_of_instances_keeps_the_state(tmp_path) -> None:
    made = [table([("x", 0, 1, 1), ("y", 0, 2, 1)]), table([("x", 0, 3, 1), ("x", 0, 40, 1)])]
    first = LocalKeyed(str(tmp_path), SCHEMA, ["k", "g"], "t", Count(), TUMBLING, policy=Hash(1))
    first.step(0, made[0])
    second = LocalKeyed(
        str(tmp_path), SCHEMA, ["k", "g"], "t", Count(), TUMBLING, 0, policy=Hash(5)
    )
    second.step(1, made[1])
    assert sorted(second.rows().column("count").to_pylist()) == [1, 2]


def test_a_hot_key_is_split_by_auto_and_still_counted_once(tmp_path) -> None:
    rows = [("hot", 0, s % 9, 1) for s in range(3000)] + [(f"k{s}", 0, 1, 1) for s in range(300)]
    made = [table(rows, 10 * n) for n in range(6)]
    runner = LocalKeyed(
        str(tmp_path), SCHEMA, ["k", "g"], "t", Count(), TUMBLING, policy=Auto(instances=4)
    )
    found = runner.run(made).to_pylist()
    splits = [p["operators"][0]["balance"]["splits"] for p in runner.progress]
    assert any(len(s["members"]) > 1 for of_batch in splits for s in of_batch), "nothing was split"
    counts = [row["count"] for row in found if row["k"] == "hot"]
    assert counts == [3000] * 5


def test_hot_keys_that_cannot_be_split_are_parted_by_auto(tmp_path) -> None:
    """Six hot keys on three instances, in update mode: two for each is the best there is."""
    rows = [(f"key{s % 6}", 0, s % 9, 1) for s in range(3000)]
    runner = LocalKeyed(
        str(tmp_path),
        SCHEMA,
        ["k", "g"],
        "t",
        Count(),
        TUMBLING,
        policy=Auto(instances=3),
        mode="update",
    )
    runner.run([table(rows, 10 * n) for n in range(6)])
    told = [p["operators"][0] for p in runner.progress]
    assert max(told[0]["load"]["rows"]) > 1000, "hashing alone does not"
    assert told[-1]["load"]["rows"] == [1000, 1000, 1000]
    assert not any("split" in of_batch["balance"]["reason"] for of_batch in told)
    assert told[-1]["balance"]["split"] is False


@pytest.mark.parametrize(
    ("process", "window", "lag"),
    [
        (Count(), Windows(10 * SECOND, 5 * SECOND), 10 * SECOND),
        (Count(), SessionWindow("3 seconds"), 0),
        (SelfJoin("7 seconds"), None, 7 * SECOND),
        (FUNCTION, None, 0),
    ],
)
def test_the_watermark_of_the_result_lags(process, window, lag) -> None:
    one = operator(process, window)
    state = one.initial_state(2)
    assert one.output_watermark_us(state) is None
    after = replace(state, watermark_us=60 * SECOND)
    assert one.output_watermark_us(after) == 60 * SECOND - lag - 1_000


def test_progress_tells_rows_state_and_balance(tmp_path) -> None:
    runner = LocalKeyed(str(tmp_path), SCHEMA, ["k", "g"], "t", Count(), TUMBLING)
    runner.run([table([("x", 0, 1, 1), ("x", 0, 2, 1)]), table([("x", 0, -20, 1), ("y", 0, 5, 1)])])
    told = runner.progress[1]["operators"][0]
    assert (told["operator"], told["instances"], told["rows"], told["late"]) == ("keyed", 2, 2, 1)
    assert told["watermark"] == "1969-12-31T23:59:35Z"
    assert told["state"]["rows"] == 2
    assert sum(told["load"]["rows"]) == 2
    assert told["balance"]["moves"] == []


def test_the_state_survives_json() -> None:
    one = operator(policy=Auto(instances=2))
    state = one.initial_state(2)
    assert type(state).from_json(state.to_json()) == state
    assert one.adopt(state, 2) is state
    moved = replace(one, policy=Hash(3)).adopt(state, 2)
    assert moved.route.instances == 3
    assert moved.previous_us is None
