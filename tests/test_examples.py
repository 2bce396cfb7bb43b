"""The README's example is the one that runs, and its result is what DuckDB says it is."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import skewless.lab.demo
from skewless.examples import nearby_drivers, ride_hailing, too_fast
from skewless.lab.demo import spatial
from skewless.lab.demo.feed import Feed
from skewless.lab.demo.globe import GlobeFeed
from skewless.lab.workloads import City

ROOT = Path(__file__).parent.parent

# Times as numbers: Spark writes them as INT96, which says nothing of the time zone.
MATCHES = """
    select o.cell, order_id, epoch_us(ordered_at), o.x, o.y, driver_id, epoch_us(seen_at), d.x, d.y
    from read_parquet('{orders}/*.parquet') o join read_parquet('{drivers}/*.parquet') d
    on o.cell = d.cell and seen_at - ordered_at between interval '-10s' and interval '10s'
    order by all
"""
RESULTS = """
    select cell, order_id, epoch_us(ordered_at), x, y,
        driver_id, epoch_us(seen_at), x_right, y_right
    from read_parquet('{results}/**/*.parquet') order by all
"""

NEARBY = """
    with pairs as (
        select order_id, driver_id, epoch_us(seen_at) as seen,
            2 * 6371008.8 * asin(sqrt(power(sin(radians(d.lat - o.lat) / 2), 2)
                + cos(radians(o.lat)) * cos(radians(d.lat))
                * power(sin(radians(d.lon - o.lon) / 2), 2))) as metres
        from read_parquet('{orders}/*.parquet') o join read_parquet('{drivers}/*.parquet') d
        on d.free and seen_at - ordered_at between interval '-30s' and interval '0s'
    )
    select order_id, driver_id, seen, round(metres, 3) from pairs where metres <= 500 order by all
"""
NEARBY_RESULTS = """
    select order_id, driver_id, epoch_us(seen_at), round(metres, 3)
    from read_parquet('{results}/**/*.parquet') order by all
"""


def test_the_readme_shows_the_example_word_for_word() -> None:
    code = Path(ride_hailing.__file__).read_text()
    assert f"```python\n{code}```" in (ROOT / "README.md").read_text()
    assert len(code.splitlines()) <= 35


def test_the_example_says_what_it_needs() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "skewless.examples.ride_hailing"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert told.returncode == 2
    assert "usage: " in told.stderr
    assert "orders drivers out" in told.stderr


def test_the_example_finds_every_driver_near_an_order(spark: Any, tmp_path: Path) -> None:
    feed = Feed(
        City(np.random.default_rng(3), drivers=150, start_hour=8.0),
        tmp_path / "input",
        steps_per_file=4,
    )
    feed.write_next()
    query = ride_hailing.dispatch(spark, str(feed.orders_dir), str(feed.drivers_dir), str(tmp_path))
    try:
        for _ in range(3):  # several micro-batches, with matches across their borders
            query.processAllAvailable()
            feed.write_next()
        query.processAllAvailable()
    finally:
        query.stop()
    expected = duckdb.sql(
        MATCHES.format(orders=feed.orders_dir, drivers=feed.drivers_dir)
    ).fetchall()
    assert len(expected) > 500
    assert duckdb.sql(RESULTS.format(results=tmp_path / "results")).fetchall() == expected


def test_the_demo_runs_on_the_engine(spark: Any, tmp_path: Path) -> None:
    summary = skewless.lab.demo.run(seconds=2, instances=3, out=tmp_path, plain=True, spark=spark)
    assert summary["same_results"]
    for query in summary["queries"].values():
        assert query["rows"] == summary["rows"]
        assert query["rows_late"] == 0
        assert query["matches"] == query["result_rows"] > 0


def test_the_example_finds_every_free_driver_within_500_m(spark: Any, tmp_path: Path) -> None:
    feed = GlobeFeed(
        City(np.random.default_rng(3), drivers=150, start_hour=8.0),
        tmp_path / "input",
        steps_per_file=4,
    )
    feed.write_next()
    folders = (str(feed.orders_dir), str(feed.drivers_dir), str(tmp_path))
    query = nearby_drivers.nearby(spark, *folders)
    try:
        for _ in range(3):  # several micro-batches, with matches across their borders
            query.processAllAvailable()
            feed.write_next()
        query.processAllAvailable()
    finally:
        query.stop()
    expected = duckdb.sql(NEARBY.format(orders=feed.orders_dir, drivers=feed.drivers_dir))
    found = duckdb.sql(NEARBY_RESULTS.format(results=tmp_path / "results"))
    assert len(expected) > 100
    assert found.fetchall() == expected.fetchall()


def test_the_spatial_demo_runs_on_the_engine(spark: Any, tmp_path: Path) -> None:
    summary = spatial.run(seconds=2, instances=3, out=tmp_path, plain=True, spark=spark)
    assert summary["orders"] > 0
    assert summary["area_matches"] > 0
    assert Path(summary["animation"]).is_file()
    assert Path(summary["results"]).is_dir()


def test_too_fast_draws_both_runs(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / "too_fast.png"
    too_fast.main(["--seconds", "2", "--rate", "100", "--out", str(figure)], spark)
    assert figure.read_bytes().startswith(b"\x89PNG")
    told = capsys.readouterr().out
    assert "without shedding: " in told
    assert "with shedding: " in told


def test_too_fast_tells_how_long_and_how_much() -> None:
    def record(second: int, **join: Any) -> dict[str, Any]:
        return {
            "timestamp": f"2026-01-01T00:00:{second:02}.000Z",
            "durationMs": {"triggerExecution": 500},
            "skewless": {"operators": [join]},
        }

    shed = {"missed": 30.0}
    found = too_fast.course([record(10, matches=0), record(14, matches=10, shed=shed)])
    assert found == [(0.5, 0.5, 1.0), (4.5, 0.5, 0.25)]
