"""The reproduction of load shedding: points are complete, results become tables and figures."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from skewless.cli import app
from skewless.errors import SkewlessError
from skewless.lab.reproduce import shedding
from skewless.lab.reproduce.shedding_cashtags import DAY_US, cashtag_streams, full_comparisons
from skewless.lab.reproduce.shedding_experiments import (
    BASIC_S,
    BUDGET,
    EXPONENTS,
    INDEXED_BASIC_S,
    WINDOWS_S,
    Point,
    Result,
    measured_points,
    perform,
    points,
)
from skewless.lab.reproduce.shedding_report import draw, gains, render, targets
from skewless.lab.reproduce.windowed.simulation import Scheme

DROP, RATE, TIME, DIRECTION = (scheme.value for scheme in Scheme)
OUTPUT = {DROP: 100.0, RATE: 210.0, TIME: 420.0, DIRECTION: 630.0}
CASHTAGS = Path("posts.parquet")


def stand_in(point: Point, seed: int, repeat: int = 0, comparison_s: float = 0.0) -> Result:
    names = [scheme.value for scheme in point.schemes]
    learned = [[0.001, 0.004, 0.002], [0.002, 0.001, 0.001]]
    return Result(
        point,
        seed,
        repeat,
        {name: dict.fromkeys(point.parts, OUTPUT[name]) for name in names},
        dict.fromkeys(names, BUDGET),
        dict.fromkeys(names, 0.1),
        {name: [1, 2, 3] for name in names},
        {name: [(0.0, 1.0, 1.0, 1.0), (5.0, 0.5, 0.0, 1.0)] for name in names},
        learned,
    )


def results(*, quick: bool = False, cashtags: Path | None = CASHTAGS) -> list[Result]:
    wanted = [
        *shedding.measured_tasks(quick=quick),
        *shedding.tasks(quick=quick, seeds=2, cashtags=cashtags),
    ]
    return [stand_in(*task) for task in wanted]


def test_every_figure_of_the_paper_is_there() -> None:
    made = [*points(quick=False), *measured_points(quick=False)]
    assert len(set(made)) == len(made)

    def found(name: str, value: str = "at") -> set[float]:
        return {getattr(p, value) for p in made if p.experiment == name}

    assert found("probability") == {0.6, 0.8}
    assert found("rates") == found("rates measured") == {0}
    assert found("lag") == found("lag measured") == {0}
    assert found("windows") == found("skew") == set(EXPONENTS)
    assert found("windows", "window_s") == set(WINDOWS_S)
    assert found("skew", "threshold") == {4}
    assert found("basic") == found("basic measured") == {*BASIC_S, 0}
    assert found("index BY_TIME") == found("index BY_IDENTIFIER") == {*INDEXED_BASIC_S, 0}
    assert found("index BY_TIME", "window_s") == {200.0}
    assert len(list(points(quick=True))) < len(list(points(quick=False))) / 2


def test_posts_are_joined_only_if_there_are_some() -> None:
    def experiments(cashtags: Path | None) -> set[str]:
        wanted = shedding.tasks(quick=True, seeds=1, cashtags=cashtags)
        return {point.experiment for point, _, _ in wanted}

    assert experiments(CASHTAGS) - experiments(None) == {"cashtags"}


def test_targets_are_judged_on_full_runs_only() -> None:
    verdicts = targets(results(), quick=False)
    assert [v["value"] for v in verdicts] == pytest.approx([2.1, 2.0, 1.5, 2.0, 1.5])
    assert [v["reached"] for v in verdicts] == [True] * 5
    assert {v["reached"] for v in targets(results(quick=True), quick=True)} == {None}


def test_a_missed_target_is_said() -> None:
    worse = results()
    for result in worse:
        if result.point.experiment == "lag":
            result.output[DIRECTION]["raised"] = 500.0
    assert [v["reached"] for v in targets(worse, quick=False)] == [True, True, False, True, True]


@pytest.mark.parametrize("quick", [True, False])
def test_tables_show_the_papers_gain_beside_ours(quick: bool) -> None:
    found = results(quick=quick)
    console = Console(width=250, record=True, file=io.StringIO())
    console.print(render(found, targets(found, quick=quick), 7e-9))
    text = console.export_text()
    expected = ["7.0 ns", "[p] 2", "[p] 1.5", "[p] 1.4", "2.10", "none", "15 days", "Fig. 9"]
    for word in expected if quick else [*expected, "Other budgets"]:
        assert word in text
    assert ("not judged" in text) == quick


def test_figures_are_written(tmp_path: Path) -> None:
    figures = draw(results(), tmp_path)
    assert [f.name for f in figures] == [
        *(f"shedding-{number}.png" for number in range(2, 9)),
        "shedding-9-scan.png",
        "shedding-9-index.png",
    ]
    assert all(f.read_bytes().startswith(b"\x89PNG") for f in figures)


def test_only_the_raised_rates_need_shedding_and_the_budget_is_kept() -> None:
    """As in Fig. 3: r is 1 at 100 tuples per second and falls at 500."""
    result = perform(Point("rates", 0, (Scheme.DROP, Scheme.RATE), lag=0.0, one_sided=True), 1)
    course = result.fractions[RATE]
    assert {r for at, r, _, _ in course if at <= 60} == {1.0}
    assert all(r < 0.7 for at, r, _, _ in course if 65 <= at <= 105)
    assert gains([result], RATE, DROP, "500/s")[0] > 1.5
    assert max(result.comparisons.values()) <= 1.05 * BUDGET
    assert len(result.series[RATE]) == 130


def test_a_lag_is_found_and_is_worth_more_with_every_adaptation() -> None:
    short = ((100.0, 25.0), (300.0, 25.0))
    steady = Point("steady", 0.8, tuple(Scheme), phases=short, steady=True, budget=BUDGET / 2)
    result = perform(steady, 1)
    assert result.output[DIRECTION]["all"] > result.output[TIME]["all"]
    assert result.output[TIME]["all"] > 1.5 * result.output[RATE]["all"]
    everything = replace(
        steady, experiment="probability", schemes=(Scheme.TIME,), learns_all=True, budget=1e15
    )
    learned = np.array(perform(everything, 1).learned)
    assert learned.shape == (2, 21)
    assert learned[1].argmax() == 15
    assert learned[1].mean() > learned[0].mean()


def test_measured_points_take_the_time_they_are_given() -> None:
    short = ((100.0, 8.0),)
    point = Point("lag measured", 0, (Scheme.TIME,), phases=short * 4, measured=True)
    much, little = perform(point, 1, 0, 1.0), perform(point, 1, 0, 1e-12)
    assert much.output[TIME]["all"] > 10 * little.output[TIME]["all"]
    assert much.dropped[TIME] == 0


def posts(path: Path, rows: list[tuple[float, str]]) -> Path:
    """A file of posts: the day and the symbol."""
    ts = pa.array([round(day * DAY_US) for day, _ in rows]).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"ts": ts, "symbol": [s for _, s in rows]}), path)
    return path


def test_posts_become_two_streams_of_sets(tmp_path: Path) -> None:
    rows = [(day / 10, symbol) for day in range(100) for symbol in ("a", "b", "a", f"s{day}")]
    path = posts(tmp_path / "posts.parquet", rows)
    streams = cashtag_streams(path, 1)
    tuples = streams.tuples
    assert len(tuples.time_s) == 100
    assert streams.items == 102
    assert streams.seconds == 10
    assert (np.diff(tuples.first) == 3).all()  # a, b and its own, each once
    assert tuples.time_s.tolist() == pytest.approx([day / 10 for day in range(100)])
    assert 30 < (tuples.side == 0).sum() < 70
    late = cashtag_streams(path, 1, lag_s=2.0)
    assert len(late.tuples.time_s) < 100
    first = tuples.time_s[tuples.side == 1][0]
    assert late.tuples.time_s[late.tuples.side == 1][0] == pytest.approx(first + 2.0)


def test_the_join_without_shedding_makes_all_comparisons(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = [(float(day), f"s{rng.integers(4)}") for day in np.sort(rng.random(300)) * 30]
    path = posts(tmp_path / "posts.parquet", rows)
    streams = cashtag_streams(path, 3)
    t, side = streams.tuples.time_s, streams.tuples.side
    age = t[None, :] - t[:, None]
    pairs = (side[:, None] != side[None, :]) & (age > 0) & (age <= 20.0)
    assert full_comparisons(streams, 20.0) == pytest.approx(pairs.sum() / streams.seconds)
    point = Point("cashtags", 0.0, tuple(Scheme), threshold=1, cashtags=path)
    result = perform(point, 3)
    assert set(result.output) == set(OUTPUT)
    assert max(result.comparisons.values()) < 0.3 * full_comparisons(streams, 20.0)


def test_the_command_writes_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shedding, "perform", stand_in)
    monkeypatch.setattr(shedding, "time_of_a_comparison", lambda *, quick: 7e-9)
    path, data = tmp_path / "r.json", posts(tmp_path / "posts.parquet", [(0.0, "a")])
    options = ["--quick", "--seeds", "2", "--out", str(tmp_path / "f"), "--json", str(path)]
    command = ["reproduce", "shedding", *options, "--cashtags", str(data)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    record = json.loads(path.read_text())
    assert record["paper"] == "load shedding"
    assert record["seeds"] == 1
    assert record["comparisonNs"] == pytest.approx(7.0)
    wanted = [
        *shedding.measured_tasks(quick=True),
        *shedding.tasks(quick=True, seeds=1, cashtags=data),
    ]
    assert len(record["results"]) == len(wanted)
    assert all(Path(figure).exists() for figure in record["figures"])


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SkewlessError, match="seeds"):
        shedding.run(out=tmp_path, json_path=None, quick=True, seeds=0)
    with pytest.raises(SkewlessError, match="cashtags"):
        shedding.run(
            out=tmp_path, json_path=None, quick=True, seeds=1, cashtags=tmp_path / "nothing"
        )
    pq.write_table(pa.table({"ts": [1]}), tmp_path / "other.parquet")
    with pytest.raises(SkewlessError, match="ts and symbol"):
        cashtag_streams(tmp_path / "other.parquet", 1)
