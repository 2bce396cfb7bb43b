"""The benchmark of shedding with joins that are not run: schedule, figures, tables, verdicts."""

import io
import json
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import skewless as sk
from skewless.errors import SkewlessError
from skewless.lab.bench import shed, shed_truth
from skewless.lab.bench.pipe import Request
from skewless.lab.bench.process import OnBatch
from skewless.lab.bench.shed_capacity import Calibration, Point, capacity, measure
from skewless.lab.bench.shed_child import Contest, Turn, release, run, turn_of, unfinished
from skewless.lab.bench.shed_figures import Overload, figures, until_full, values_of
from skewless.lab.bench.shed_needless import Pair, Pairs, pair_of
from skewless.lab.bench.shed_streams import AT_LEAST, SIDES, sides, write
from skewless.testing import join_oracle


def turn(number: int = 0, **fields: Any) -> Turn:
    values: dict[str, Any] = {
        "seconds": 1.0,
        "left": 100,
        "right": 100,
        "late": 0,
        "dropped": 0,
        "matches": 10,
        "offered": 1_000,
        "comparisons": 1_000,
        "fraction": 1.0,
    }
    return Turn(number, **{**values, **fields})


def test_the_second_stream_follows_the_first() -> None:
    window_s = 4.0
    left, right = sides([(500.0, 16.0)], window_s)
    # 5/8 of a cycle of 8 s: what is popular on the right is popular on the left 3 s later.
    found = {
        apart: _matching(left, right, round(1e6 * apart)) for apart in (-3.5, -3.0, 0.0, 1.0, 3.0)
    }
    assert max(found, key=lambda apart: found[apart]) in (-3.5, -3.0)
    assert found[-3.0] > 2 * found[1.0]


def _matching(left: Any, right: Any, apart_us: int) -> int:
    """Pairs of which the right row is about so much later than the left one."""
    found = 0
    masks = [
        [frozenset(side.items[a:b].tolist()) for a, b in pairwise(side.first)]
        for side in (left, right)
    ]
    at = np.searchsorted(right.time_us, left.time_us + apart_us)
    for row, other in enumerate(at):
        for near in range(max(0, other - 5), min(len(right), other + 5)):
            found += len(masks[0][row] & masks[1][near]) >= AT_LEAST
    return found


def test_files_hold_their_stretch_of_time_in_the_order_of_their_names(tmp_path: Path) -> None:
    streams = sides([(20.0, 2.0)], 1.0)
    write(streams, tmp_path, [0.0, 0.5, 2.0])
    for name, side in zip(SIDES, streams, strict=True):
        paths = sorted((tmp_path / name).iterdir())
        tables = [pq.read_table(path) for path in paths]
        assert [table.num_rows for table in tables] == [10, 30]
        read = np.concatenate([t["ts"].cast("int64").to_numpy() for t in tables])
        assert (read == side.time_us).all()
        assert paths[0].stat().st_mtime < paths[1].stat().st_mtime


@pytest.mark.parametrize("threads", [1, 3])
def test_the_truth_is_that_of_the_oracle(threads: int) -> None:
    left, right = sides([(40.0, 4.0), (80.0, 3.0)], 2.0)
    batches = [(100, 20), (0, 180), (250, 190)]  # the last rows come in no batch
    tables, taken = [], [0, 0]
    for rows in batches:
        cut = [s.table().slice(at, n) for s, at, n in zip((left, right), taken, rows, strict=True)]
        tables.append((cut[0], cut[1]))
        taken = [at + n for at, n in zip(taken, rows, strict=True)]

    def oracle(count: int) -> int:
        return join_oracle(
            tables[:count],
            on=[],
            time=("ts", "ts"),
            within=("-2 seconds", "2 seconds"),
            watermark=(None, None),
            match=sk.Overlap("items", AT_LEAST),
        ).num_rows

    totals = [oracle(count) for count in range(1, 4)]
    assert totals[0] < totals[1] < totals[2]
    found = shed_truth.results(left, right, 2.0, batches, threads)
    assert np.cumsum(found).tolist() == totals


def test_files_appear_when_their_time_is_over(tmp_path: Path) -> None:
    files, folder = tmp_path / "files", tmp_path / "source"
    write(sides([(10.0, 3.0)], 1.0), files, [0.0, 1.0, 2.0, 3.0])
    for side in SIDES:
        (folder / side).mkdir(parents=True)
    now = 100.0
    seen: list[tuple[float, int]] = []

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds + 0.25  # a sleep that is too long does not add up

    def emit(event: dict[str, Any]) -> None:
        assert len(list((folder / "left").iterdir())) == event["done"]
        assert len(list((folder / "right").iterdir())) == event["done"]
        seen.append((now, event["done"]))

    steps = sorted(path.name for path in (files / "left").iterdir())
    release(files, folder, steps, 1.0, emit, clock=lambda: now, wait=wait)
    assert seen == [(101.25, 1), (102.25, 2), (103.25, 3)]
    assert len(list((files / "left").iterdir())) == 3, "the next contender gets the same files"


def test_capacity_lies_between_the_rates_around_it() -> None:
    points = [Point(100, 0.5, 1e3), Point(200, 0.8, 4e3), Point(400, 2.0, 16e3)]
    found = capacity(points, 1.0)
    # A sixth of the way from 0.8 s to 2 s, and so from 200² to 400².
    assert found.rate == pytest.approx((200**2 + (400**2 - 200**2) / 6) ** 0.5)
    assert found.comparisons == pytest.approx(6e3)
    assert capacity(points[:2], 1.0) == points[1], "none was too fast"
    assert 0 < capacity(points[2:], 1.0).rate < 400, "all were too fast"


def test_batches_are_told_by_the_rows_in_them() -> None:
    turns = [turn(0, left=10), turn(1, left=15), turn(2, left=0), turn(3, left=20), turn(4)]
    before, during, after = Overload(20, 45).split(turns)
    assert [[t.number for t in some] for some in (before, during, after)] == [[0], [1, 2, 3], [4]]


def test_a_batch_that_ends_just_before_the_rise_is_not_overloaded() -> None:
    before, during, after = Overload(100, 200).split([turn(n) for n in range(3)])
    assert ([t.number for t in before], [t.number for t in during]) == ([0], [1])
    assert [t.number for t in after] == [2]


def test_figures_of_an_overload() -> None:
    turns = [
        turn(0, seconds=9.0),  # starts up
        turn(1),
        turn(2, seconds=5.0),  # the first overloaded one
        turn(3, seconds=1.5, fraction=0.2, comparisons=200, missed=30.0, missed_error=3.0),
        turn(4, seconds=2.5, fraction=0.4, comparisons=400, missed=20.0, missed_error=4.0),
        turn(5, seconds=1.0, fraction=0.5, offered=9_000),
        turn(6, seconds=1.0, fraction=0.9, offered=500),
        turn(7, seconds=1.0),
    ]
    found = figures(turns, Overload(200, 500), interval_s=2.0, fitting=800)
    assert (found["over"], found["judged"], found["longest"]) == (1, 6, 2.5)
    assert (found["first_overloaded"], found["last_overloaded"]) == (5.0, 2.5)
    assert (found["fraction"], found["fraction_before"]) == (0.3, 1.0)
    assert (found["output"], found["matches"]) == (30, 80)
    assert found["batches_until_full"] == 2
    # While the windows are still full, there is too much to probe however few rows come.
    assert found["batches_until_full_since_it_fits"] == 1
    assert (found["missed"], found["missed_error"]) == (50.0, 5.0)
    assert found["finished"]


def test_never_full_again_is_not_none_at_all() -> None:
    assert until_full([turn(0, fraction=0.9)]) is None
    assert until_full([turn(0)]) == 0


def test_values_are_absent_where_nothing_was_measured() -> None:
    of = figures([turn(0), turn(1)], Overload(0, 200), 2.0, 1e3)
    assert values_of({}, None) == {}
    assert values_of({"Shed": of}, None).keys() == {"over"}
    both = values_of({"Shed": {**of, "output": 30, "missed": 90.0}, "RandomDrop": of}, 100.0)
    assert both["shed_over_drop"] == 1.5
    assert both["missed_off"] == pytest.approx(0.1)


def progress(shed: dict[str, Any] | None) -> dict[str, Any]:
    join = {
        "rows": {"left": 3, "right": 4},
        "late": {"left": 1, "right": 0},
        "matches": 5,
        "comparisons": 9,
        "load": {"cpuMs": [200.0, 100.0]},
        **({"shed": shed} if shed else {}),
    }
    return {
        "batchId": 7,
        "timestamp": "2026-01-01T00:00:10.000Z",
        "numInputRows": 7,
        "durationMs": {"triggerExecution": 1_500, "addBatch": 1_400},
        "skewless": {"operators": [join]},
    }


def test_the_record_of_a_batch() -> None:
    told = {
        "offered": 90,
        "fraction": 0.1,
        "missed": 40.5,
        "missedError": 2.0,
        "droppedRows": {"left": 0, "right": 2},
    }
    assert turn_of(progress(told)) == Turn(7, 1.5, 3, 4, 1, 2, 5, 90, 9, 0.1, 40.5, 2.0)
    assert turn_of(progress(None)) == Turn(7, 1.5, 3, 4, 1, 0, 5, 9, 9, 1.0)


def test_a_batch_that_never_ended_took_at_least_so_long() -> None:
    running = unfinished(progress(None), datetime(2026, 1, 1, 0, 0, 20, tzinfo=UTC))
    assert (running.number, running.seconds, running.is_done) == (8, 8.5, False)


def test_a_pair_of_runs() -> None:
    whole = {"fraction": 1.0, "offered": 9, "missed": 0, "missedError": 0, "droppedRows": {}}
    found = pair_of([progress(None)] * 2, [progress(whole)] * 2, warm_up=1)
    assert found == Pair(1.4, 1.4, 300.0, 300.0, (10, 10), 1.0)
    assert (found.slower, found.slower_by_cpu) == (0.0, 0.0)


SECONDS = {"Shed": 1.5, "RandomDrop": 1.6, "no shedding": 6.0}
MATCHES = {"Shed": 90, "RandomDrop": 30, "no shedding": 200}


def pretend(request: Request, on_batch: OnBatch) -> shed.Heard:
    """Read the files that a process would have got, and say that it took this long."""
    if isinstance(request, Calibration):
        points = [Point(100.0, 1.0, 1e5), Point(200.0, 3.0, 4e5)]
        return [asdict(point) for point in points], None
    if isinstance(request, Pairs):
        return [asdict(Pair(1.0, s, 200.0, 201.0, (7, 7), 1.0)) for s in (1.04, 1.01, 0.99)], None
    assert isinstance(request, Contest)
    names = sorted(path.name for path in Path(request.files, "left").iterdir())
    turns = []
    for number, name in enumerate(names):
        rows = [pq.read_metadata(Path(request.files, s, name)).num_rows for s in SIDES]
        turns.append(
            turn(
                number,
                seconds=SECONDS[request.contender],
                left=rows[0],
                right=rows[1],
                matches=MATCHES[request.contender] if number % 4 == 0 else 0,
                missed=100.0,
            )
        )
        on_batch(number + 1)
    assert sum(t.left + t.right for t in turns) == request.rows
    return [asdict(t) for t in turns], None


def bench(
    scenario: str, ask: shed.Ask = pretend, json_path: Path | None = None, busy: float = 0.0
) -> tuple[dict[str, Any], str]:
    console = Console(file=io.StringIO(), width=80)
    result = shed.run(
        scenarios=[scenario],
        json_path=json_path,
        quick=True,
        ask=ask,
        busy=lambda: busy,
        console=console,
    )
    assert isinstance(console.file, io.StringIO)
    return result, console.file.getvalue()


def test_contenders_side_by_side(tmp_path: Path) -> None:
    result, shown = bench("overload", json_path=tmp_path / "r.json")
    found = result["scenarios"]["overload"]
    # 2 s lie half-way between 1 s and 3 s, and so does the square of the rate.
    assert found["capacity"]["rate"] == pytest.approx((0.5 * (100**2 + 200**2)) ** 0.5)
    assert [run["contender"] for run in found["runs"]] == ["Shed", "RandomDrop", "no shedding"]
    assert found["values"]["shed_over_drop"] == 3.0
    assert found["values"]["over"] == 0
    assert found["runs"][2]["figures"]["over"] > 10
    assert found["missed_in_truth"] == sum(found["truth"]) - found["runs"][0]["figures"]["matches"]
    assert [target["reached"] for target in found["targets"]] == [None] * 4
    assert result["errors"] == []
    assert "output, Shed ÷ RandomDrop ≥ 1.5: 3.00 ×, not judged" in shown
    assert "a full join keeps up with 158 rows/s" in shown
    assert "not to be trusted" not in shown
    assert json.loads((tmp_path / "r.json").read_text()) == result


def test_a_busy_machine_is_told() -> None:
    _, shown = bench("needless", busy=0.4)
    assert "up to 40% busy with other work" in shown


def test_a_failed_contender_does_not_stop_the_others() -> None:
    def fails(request: Request, on_batch: OnBatch) -> shed.Heard:
        if isinstance(request, Contest) and request.contender == "RandomDrop":
            return [], "out of memory"
        return pretend(request, on_batch)

    result, shown = bench("overload", fails)
    assert result["errors"] == ["overload: RandomDrop: out of memory"]
    assert "shed_over_drop" not in result["scenarios"]["overload"]["values"]
    assert "failed" in shown


def test_without_a_capacity_nothing_is_measured() -> None:
    result, shown = bench("overload", lambda request, on_batch: ([], "no Java"))
    assert result["errors"] == ["overload: calibration: no Java"]
    assert "no batch over max_latency: not measured" in shown


def test_results_that_do_not_exist_are_an_error() -> None:
    def too_many(request: Request, on_batch: OnBatch) -> shed.Heard:
        items, error = pretend(request, on_batch)
        if isinstance(request, Contest):
            items = [{**item, "matches": 10**9} for item in items]
        return items, error

    result, _ = bench("overload", too_many)
    assert "overload: Shed found results that do not exist" in result["errors"]


def test_needless_shedding_is_judged_by_the_median_pair() -> None:
    result, shown = bench("needless")
    found = result["scenarios"]["needless"]
    assert found["values"]["slower"] == pytest.approx(0.01)
    assert found["spread"] == [pytest.approx(-0.01), pytest.approx(0.04)]
    assert "shed without need ≤ 2 % slower: +1.0%, not judged" in shown
    assert "from -1.0% to +4.0%" in shown
    assert "by the CPU time of the tasks: +0.5%" in shown


@pytest.mark.parametrize(
    ("pair", "error"),
    [
        (
            Pair(1.0, 1.0, 9.0, 9.0, (7, 7), 0.9),
            "results were shed although there was time for all",
        ),
        (Pair(1.0, 1.0, 9.0, 9.0, (7, 6), 1.0), "different matches: [(7, 6)]"),
    ],
)
def test_needless_shedding_changes_nothing(pair: Pair, error: str) -> None:
    result, _ = bench("needless", lambda request, on_batch: ([asdict(pair)], None))
    assert result["errors"] == [f"needless: {error}"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SkewlessError, match="scenario: got 'nope'; takes overload, "):
        bench("nope")


@pytest.mark.parametrize(
    "request_",
    [
        Contest("Shed", "f", "d", 10, 4.0, 2.0, 0.5, 2, "1g"),
        Calibration("d", 4.0, 2.0, 100.0, 3, 2, "1g"),
        Pairs("l", "r", 0.5, 1, 2, "d", 2, "1g"),
    ],
    ids=lambda request: type(request).__name__,
)
def test_a_request_survives_the_pipe(request_: Request) -> None:
    assert type(request_).from_json(request_.as_json()) == request_
    assert type(request_) in shed.PROGRAMS


def test_a_contest_on_spark_finds_what_there_is(spark: SparkSession, tmp_path: Path) -> None:
    streams = sides([(60.0, 3.0)], 1.0)
    write(streams, tmp_path / "files", [0.0, 1.0, 2.0, 3.0])
    contest = Contest(
        "no shedding", str(tmp_path / "files"), str(tmp_path / "a"), 360, 1.0, 0.5, 0.1, 2, "1g"
    )
    steps: list[int] = []
    plain = run(spark, contest, lambda event: steps.append(event["done"]))
    assert steps == [1, 2]
    rows = [(turn.left, turn.right) for turn in plain]
    if all(turn.is_done for turn in plain):  # a machine may be too slow for the time it has
        assert np.sum(rows, axis=0).tolist() == [180, 180]
    truth = shed_truth.results(*streams, 1.0, rows)
    assert [turn.matches for turn in plain] == truth
    assert sum(truth) > 0
    assert all(turn.seconds > 0 and turn.late == 0 for turn in plain)
    shedding = run(
        spark,
        replace(contest, contender="Shed", folder=str(tmp_path / "b")),
        lambda event: None,
    )
    assert sum(turn.matches for turn in shedding) <= sum(truth)


def test_capacity_is_measured_with_full_windows(spark: SparkSession, tmp_path: Path) -> None:
    calibration = Calibration(str(tmp_path), 2.0, 1.0, 40.0, 1, 2, "1g")
    found = measure(spark, calibration, 40.0)
    assert found.seconds > 0
    assert found.comparisons > 100
    assert list(tmp_path.iterdir()) == []


def test_equal_comparisons_are_those_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def perform(point: Any, seed: int) -> Any:
        asked.append((point.experiment, seed))
        return SimpleNamespace(as_json=lambda: {"seed": seed})

    names = ("probability", "rates", "lag", "basic", "steady")
    target = {"target": "rate ÷ drop ≥ 2", "bound": 2.0, "value": 2.125, "range": [2.0, 2.25]}
    experiments = ModuleType("skewless.lab.reproduce.shedding_experiments")
    vars(experiments).update(
        perform=perform, points=lambda quick: [SimpleNamespace(experiment=n) for n in names]
    )
    report = ModuleType("skewless.lab.reproduce.shedding_report")
    vars(report).update(targets=lambda results, quick: [{**target, "reached": None}])
    for module in (experiments, report):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    result, shown = bench("comparisons")
    assert asked == [("rates", 1), ("lag", 1), ("steady", 1)]
    assert result["scenarios"]["comparisons"]["targets"][0]["value"] == 2.125
    assert "rate ÷ drop ≥ 2: 2.12 (2.00–2.25), not judged" in shown
