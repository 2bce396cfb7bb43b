"""The whole benchmark of balancing with policies that are not run: figures, tables, verdicts."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from skewless.errors import SkewlessError
from skewless.lab.bench import balance, balance_child
from skewless.lab.bench.balance_child import Order, Turn, turn_of
from skewless.lab.bench.balance_figures import batches_until_even, figures
from skewless.lab.bench.overhead import report_ms
from skewless.lab.bench.process import OnBatch
from skewless.lab.bench.scenarios import Contender

SECONDS = {"Hash": 3.0, "LsStream": 1.5, "FastJoin": 2.0, "Auto": 2.5}
ORDER = Order(Contender("Hash", {"instances": 2}), "l", "r", 0.5, False, 2, "c", "1g")


def turn(number: int = 0, seconds: float = 1.0, **fields: Any) -> Turn:
    values: dict[str, Any] = {
        "rows": 100,
        "matches": 7,
        "replicas": 0,
        "cpu_ms": [10.0, 10.0],
        "instance_rows": [50, 50],
        "instance_matches": [4, 3],
        "plan_ms": 2.0,
        "moves": 0,
        "splits": 0,
        "reason": "",
    }
    return Turn(number, seconds, **{**values, **fields})


def uneven(*imbalances: float) -> list[Turn]:
    """Batches of two instances with this max ÷ mean."""
    return [turn(i, cpu_ms=[10 * x, 20 - 10 * x]) for i, x in enumerate(imbalances)]


def pretend(order: Order, on_batch: OnBatch) -> balance.Heard:
    """Read the files that the policy would have got, and say that it took this long."""
    turns = []
    for number, left in enumerate(sorted(Path(order.left).iterdir())):
        rows = pq.read_metadata(left).num_rows * 2
        turns.append(turn(number, SECONDS[order.contender.policy], rows=rows))
        on_batch(number + 1)
    return turns, None


def bench(
    scenario: str,
    measure: balance.Measure = pretend,
    json_path: Path | None = None,
    busy: float = 0.0,
) -> tuple[dict[str, Any], str]:
    console = Console(file=io.StringIO(), width=80)
    result = balance.run(
        scenarios=[scenario],
        json_path=json_path,
        quick=True,
        measure=measure,
        busy=lambda: busy,
        console=console,
    )
    assert isinstance(console.file, io.StringIO)
    return result, console.file.getvalue()


def test_policies_side_by_side(tmp_path: Path) -> None:
    result, shown = bench("straggler", json_path=tmp_path / "r.json")
    scenario = result["scenarios"]["straggler"]
    assert [run["policy"] for run in scenario["runs"]] == ["Hash", "FastJoin", "LsStream", "Auto"]
    assert scenario["values"]["hash_over_lsstream"] == 2.0
    assert scenario["values"]["hash_over_auto"] == 1.2
    (target,) = scenario["targets"]
    assert (target["value"], target["reached"]) == (2.0, None)
    assert result["errors"] == []
    assert "LsStream(threshold=0.05)" in shown
    assert "Hash ÷ LsStream ≥ 1.6: 2.00, not judged" in shown
    assert "…" not in shown
    assert "not to be trusted" not in shown
    assert json.loads((tmp_path / "r.json").read_text()) == result


def test_a_busy_machine_is_told() -> None:
    result, shown = bench("hotkey", busy=0.4)
    assert result["scenarios"]["hotkey"]["busy_with_other_work"] == 0.4
    assert "up to 40% busy with other work" in shown


def test_what_is_judged() -> None:
    targets = balance.TARGETS["straggler"]
    for value, reached in ((1.6, True), (1.59, False)):
        (verdict,) = balance.judged(targets, {"hash_over_lsstream": value}, quick=False)
        assert verdict["reached"] is reached
    assert balance.TARGETS.keys() == set(balance.SCENARIOS)


def test_other_matches_are_an_error() -> None:
    def one_too_many(order: Order, on_batch: OnBatch) -> balance.Heard:
        turns, _ = pretend(order, on_batch)
        extra = order.contender.policy == "Auto"
        return [turn(t.number, matches=t.matches + extra) for t in turns], None

    result, shown = bench("hotkey", one_too_many)
    assert result["errors"] == ["hotkey: Auto found 8 matches in batch 0, Hash found 7"]
    assert "ERROR: Auto found 8 matches" in shown


def test_a_failed_policy_does_not_stop_the_others() -> None:
    def fails(order: Order, on_batch: OnBatch) -> balance.Heard:
        if order.contender.policy == "Hash":
            return [], "out of memory"
        return pretend(order, on_batch)

    result, shown = bench("zipf16", fails)
    assert result["errors"] == ["zipf16: Hash: out of memory"]
    assert result["scenarios"]["zipf16"]["values"]["auto_imbalance"] == 1.0
    assert "failed" in shown


def test_the_jump_is_told_in_batches() -> None:
    result, shown = bench("jump")
    assert result["scenarios"]["jump"]["values"]["auto_batches"] == 0
    assert "even" in shown
    assert "…" not in shown


def test_overhead_is_a_share_of_the_batch() -> None:
    result, shown = bench("overhead")
    values = result["scenarios"]["overhead"]["values"]
    assert values["share"] == pytest.approx((values["report_ms"] + 2.0) / 2_500)
    assert "the driver's plan 2.0 ms" in shown


def test_planning_judges_the_policies_as_they_are_by_default() -> None:
    result, shown = bench("planning")
    scenario = result["scenarios"]["planning"]
    most = [
        r["milliseconds_most"] for r in scenario["planners"] if r["planner"] in ("LsStream", "Auto")
    ]
    assert scenario["values"] == {"ms_256x32": max(most)}
    assert "65,536 partitions × 1,000 instances ≤ 500 ms: not measured" in shown


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SkewlessError, match="scenario: got 'nope'; takes straggler, "):
        bench("nope")


def test_figures_leave_out_the_first_batches() -> None:
    turns = [
        turn(0, 9.0, moves=3),
        turn(1, 1.0, cpu_ms=[1.0, 3.0]),
        turn(2, 2.0, cpu_ms=[2.0, 2.0]),
    ]
    found = figures(turns, warm_up=1)
    assert found["seconds"] == 1.5
    assert (found["batches"], found["left_out"]) == (2, 1)
    # Of the sums, 3 and 5: what evens out between batches is no imbalance.
    assert found["imbalance"] == 1.25
    assert (found["moves"], found["moves_when_settled"]) == (3, 0)


@pytest.mark.parametrize(
    ("imbalances", "batches"),
    [
        ((2.0, 1.0, 1.0, 1.0), 0),
        ((2.0, 1.0, 1.9, 1.1), 1),
        ((2.0, 1.4, 1.9, 1.45), 1),
        ((2.0, 1.0, 1.9, 1.45), None),
    ],
    ids=["unmoved", "one batch", "as it was before", "never"],
)
def test_batches_until_even(imbalances: tuple[float, ...], batches: int | None) -> None:
    assert batches_until_even(uneven(*imbalances), warm_up=1, jumps_at=2) == batches


def test_an_order_survives_the_pipe() -> None:
    assert Order.from_json(ORDER.as_json()) == ORDER


def test_the_record_of_a_batch() -> None:
    join = {
        "matches": 5,
        "replicas": {"left": 1, "right": 2},
        "load": {"cpuMs": [1.0, 3.0], "rows": [4, 6], "matches": [2, 3]},
        "balance": {"moves": [[0, 0, 1]], "splits": [], "reason": "why"},
    }
    progress = {
        "batchId": 3,
        "numInputRows": 10,
        "durationMs": {"addBatch": 250},
        "skewless": {"operators": [join], "durationMs": {"plan": 4.0}},
    }
    found = turn_of(progress)
    assert found == Turn(3, 0.25, 10, 5, 3, [1.0, 3.0], [4, 6], [2, 3], 4.0, 1, 0, "why")
    assert found.imbalance == 1.5
    assert balance_child.imbalance([0, 0]) == 1.0


def child(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def test_turns_come_back_through_the_pipe() -> None:
    record = json.dumps({"event": "end", "turns": [asdict(turn())]})
    program = f"""
import os, sys
sys.stdin.readline()
with os.fdopen(int(sys.argv[1]), "w") as pipe:
    print('{{"event": "batch", "done": 1}}', file=pipe)
    print('''{record}''', file=pipe)
"""
    done: list[int] = []
    assert balance.measure(ORDER, done.append, child(program)) == ([turn()], None)
    assert done == [1]


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("raise SystemExit('no Java')", "exit status 1; it said: no Java"),
        ("", "it measured nothing"),
    ],
)
def test_what_went_wrong_is_told(program: str, error: str) -> None:
    assert balance.measure(ORDER, lambda done: None, child(program)) == ([], error)


def test_the_time_of_a_report_is_by_the_clock_given() -> None:
    ticks: Callable[[], float] = iter(range(1_000)).__next__
    assert report_ms(1_000, 10, 256, clock=ticks) == 1_000
