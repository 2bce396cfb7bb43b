"""The whole map benchmark with engines that are not run: work, figures, tables, verdicts."""

import io
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner

from skewless import cli
from skewless.errors import SkewlessError
from skewless.lab.bench import map as bench
from skewless.lab.bench import map_child
from skewless.lab.bench.map_child import ENGINES, Errand
from skewless.lab.bench.map_scenarios import EVEN, FULL, QUICK, drawn_mentions, read_mentions
from skewless.lab.bench.map_work import MapBatch, Wait, Waiting, batch_of, read_notes
from skewless.lab.bench.process import OnBatch

SECONDS = {"repartition": 3.0, "skewless": 2.0}
ERRAND = Errand("skewless", "f", "n", 2, "kind", "c", "1g")


def pretend(errand: Errand, on_batch: OnBatch) -> bench.Heard:
    """Read the files that the engine would have got, and say that it took this long."""
    batches = []
    for number, path in enumerate(sorted(Path(errand.files).iterdir())):
        rows = pq.read_table(path)
        assert set(rows.column("batch").to_pylist()) == {number}
        seconds = SECONDS[errand.engine]
        work_s = sum(rows.column("cost_ms").to_pylist()) / 1e3
        batches.append(MapBatch(number, seconds, rows.num_rows, 0, seconds / 2, work_s))
        on_batch(number + 1)
    return batches, None


def run(measure: Any = pretend, **options: Any) -> tuple[dict[str, Any], str]:
    console = Console(file=io.StringIO(), width=80)
    given = {"scenarios": None, "mentions": None, "json_path": None, "quick": True, **options}
    result = bench.run(measure=measure, busy=lambda: 0.0, console=console, **given)
    assert isinstance(console.file, io.StringIO)
    return result, console.file.getvalue()


def test_engines_side_by_side(tmp_path: Path) -> None:
    result, shown = run(json_path=tmp_path / "r.json")
    assert list(result["scenarios"]) == list(bench.SCENARIOS)
    values = result["scenarios"]["classes"]["values"]
    assert values["repartition_batch"] == values["repartition_makespan"] == 1.5
    assert result["scenarios"]["even"]["values"]["overhead"] == pytest.approx(-1 / 3)
    assert result["errors"] == []
    assert "makespan of repartition(k) ÷ sk.map ≥ 1.3: 1.50, not judged" in shown
    assert "at most 3 % above repartition(k): -33.3%, not judged" in shown
    assert "of the rows mention somebody whom none before them did" in shown
    assert "…" not in shown
    assert json.loads((tmp_path / "r.json").read_text()) == result


def test_rows_that_are_missing_or_done_twice_are_errors() -> None:
    def careless(errand: Errand, on_batch: OnBatch) -> bench.Heard:
        batches, _ = pretend(errand, on_batch)
        if errand.engine == "skewless":
            batches[1] = replace(batches[1], repeated=3)
        return batches, None

    result, shown = run(careless, scenarios=["mentions"])
    assert result["errors"] == [
        "mentions: skewless: batch 1 had 200 rows instead of 200, and 3 of them again"
    ]
    assert "ERROR: skewless: batch 1" in shown


def test_a_failed_engine_does_not_stop_the_others() -> None:
    def fails(errand: Errand, on_batch: OnBatch) -> bench.Heard:
        return ([], "no Java") if errand.engine == "skewless" else pretend(errand, on_batch)

    result, shown = run(fails, scenarios=["even"])
    assert result["errors"] == ["even: skewless: no Java"]
    assert result["scenarios"]["even"]["values"] == {}
    assert "failed" in shown


def test_every_target_is_of_a_scenario_with_its_engines() -> None:
    for scenario in FULL:
        assert set(scenario.engines) <= set(ENGINES)
        made = [
            {"engine": e, "figures": {"seconds": 1.0, "makespan_s": 1.0}} for e in scenario.engines
        ]
        values = bench.values_of(made)
        assert all(target.ratio in values for target in bench.TARGETS[scenario.name])


def test_drawn_mentions_have_every_class_and_are_always_the_same() -> None:
    drawn = drawn_mentions(20_000)
    shares = drawn.shares()
    assert sum(shares.values()) == pytest.approx(1)
    assert 0 < shares["25 ms"] < shares["5 ms"] < shares["1 ms"]
    assert drawn_mentions(20_000).names.equals(drawn.names)


def test_mentions_of_a_file_are_classed_by_name_and_by_who_writes(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    mentions = ["foxnews", "repfox", "BOB", "cnn", "someone"]
    pq.write_table(
        pa.table({"author": ["RepFox", "bob", "x", "x", "x"], "mention": mentions}), path
    )
    found = read_mentions(path, 5)
    assert found.costs_ms.tolist() == [25.0, 5.0, 5.0, 25.0, 1.0]
    with pytest.raises(SkewlessError, match="mentions: got '5 rows'"):
        read_mentions(path, 6)
    path.write_bytes(b"no parquet")
    with pytest.raises(SkewlessError, match="columns author and mention"):
        read_mentions(path, 1)


def test_even_rows_all_cost_the_same(tmp_path: Path) -> None:
    scenario = next(s for s in QUICK if s.name == EVEN)
    folder = scenario.write(drawn_mentions(scenario.rows), tmp_path / "files")
    table = pa.concat_tables(pq.read_table(path) for path in sorted(folder.iterdir()))
    assert table.column("id").to_pylist() == list(range(scenario.rows))
    assert set(table.column("cost_ms").to_pylist()) == {scenario.even_ms}


def test_every_wait_is_noted(tmp_path: Path) -> None:
    work = Waiting(str(tmp_path))
    rows = [{"batch": b, "id": i, "mention": "m", "cost_ms": 1.0} for b in (0, 1) for i in (4, 5)]
    batches: Iterator[pa.RecordBatch] = iter([pa.RecordBatch.from_pylist(rows)])
    began = time.perf_counter()
    (out,) = work.over_batches(batches)
    assert out.column("id").to_pylist() == [4, 5, 4, 5]
    noted = read_notes(tmp_path)
    assert {batch: [w.id for w in waits] for batch, waits in noted.items()} == {
        0: [4, 5],
        1: [4, 5],
    }
    for wait in (w for waits in noted.values() for w in waits):
        assert wait.began_s >= began - 1e-6
        assert wait.ended_s - wait.began_s >= 0.001 - 2e-6


def test_what_the_notes_tell_of_a_batch() -> None:
    waits = [Wait(3, 1, 10.0, 11.0), Wait(3, 2, 10.5, 12.0), Wait(3, 1, 11.0, 11.5)]
    assert batch_of(3, 4.0, waits) == MapBatch(3, 4.0, 2, 1, 2.0, 3.0)
    assert batch_of(4, 1.0, []).rows == 0


def test_figures_are_medians() -> None:
    batches = [MapBatch(i, s, 10, 0, s / 2, 10 * s / 4) for i, s in enumerate((1.0, 4.0, 2.0))]
    assert bench.figures(batches) == {
        "batches": 3,
        "seconds": 2.0,
        "makespan_s": 1.0,
        "work_s": 5.0,
        "used": 0.5,
    }


def test_an_errand_survives_the_pipe() -> None:
    assert Errand.from_json(ERRAND.as_json()) == ERRAND


def test_batches_come_back_through_the_pipe() -> None:
    batch = MapBatch(0, 1.0, 10, 0, 0.5, 2.0)
    program = f"""
import os, sys
sys.stdin.readline()
with os.fdopen(int(sys.argv[1]), "w") as pipe:
    print('{{"event": "batch", "done": 1}}', file=pipe)
    print('''{json.dumps({"event": "end", "batches": [asdict(batch)]})}''', file=pipe)
"""
    done: list[int] = []
    found = bench.measure(ERRAND, done.append, (sys.executable, "-c", program))
    assert found == ([batch], None)
    assert done == [1]
    failed = bench.measure(ERRAND, done.append, (sys.executable, "-c", ""))
    assert failed == ([], "it measured nothing")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SkewlessError, match="scenario: got 'nope'; takes classes, "):
        run(scenarios=["nope"])


def test_the_command_names_what_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = []

    def note(**options: Any) -> dict[str, Any]:
        calls.append(options)
        return {"errors": ["one"]}

    monkeypatch.setattr(bench, "run", note)
    runner = CliRunner(env={"COLUMNS": "300", "TERM": "dumb"})
    help_text = runner.invoke(cli.app, ["bench", "map", "--help"]).output
    assert all(name in help_text for name in bench.SCENARIOS)
    given = ["bench", "map", "--scenario", "even", "--quick", "--json", str(tmp_path / "r.json")]
    assert runner.invoke(cli.app, given).exit_code == 1
    assert calls == [
        {
            "scenarios": ["even"],
            "mentions": None,
            "json_path": tmp_path / "r.json",
            "quick": True,
        }
    ]


def test_every_engine_does_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    """A quick run, on the shared session: with fewer slots than instances, so nothing is timed."""
    scenario = replace(QUICK[0], rows_per_batch=60, batches=2)
    files = scenario.write(drawn_mentions(scenario.rows), tmp_path / "files")
    for engine in ("repartition", "skewless"):
        notes = tmp_path / engine
        notes.mkdir()
        errand = Errand(engine, str(files), str(notes), 4, "kind", f"{notes}-checkpoint", "1g")
        batches = map_child.run(spark, errand, lambda event: None)
        assert bench.wrong_rows(batches, scenario) is None
        for batch in batches:
            # Nobody can be done sooner than the work divided by the instances.
            assert 0 < batch.work_s <= 4 * batch.makespan_s
            assert batch.makespan_s < batch.seconds
