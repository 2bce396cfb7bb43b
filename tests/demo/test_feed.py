"""The live feed: complete files in time order, and counters that agree with them."""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skewless.demo.feed import Feed
from skewless.workloads.city import DRIVERS, ORDERS, City


def make(folder: Path, **changes: float) -> Feed:
    city = City(np.random.default_rng(5), drivers=40, start_hour=8.0)
    return Feed(city, folder, steps_per_file=3, **changes)


def test_files_follow_each_other_in_event_time(tmp_path: Path) -> None:
    feed = make(tmp_path)
    for _ in range(4):
        feed.write_next()
    sides = [(feed.orders_dir, ORDERS, "ordered_at"), (feed.drivers_dir, DRIVERS, "seen_at")]
    for folder, schema, column in sides:
        files = sorted(folder.iterdir())
        assert [file.name for file in files] == [f"part-{n:06d}.parquet" for n in range(4)]
        newest = 0
        for file in files:
            table = pq.read_table(file)
            assert table.schema.equals(schema)
            times = table[column].cast(pa.int64()).to_numpy()
            assert times.min() > newest
            newest = times.max()


def test_counters_agree_with_the_files(tmp_path: Path) -> None:
    feed = make(tmp_path)
    assert feed.hour == 8.0
    for _ in range(3):
        feed.write_next()
    orders, drivers = (
        sum(pq.read_metadata(file).num_rows for file in folder.iterdir())
        for folder in (feed.orders_dir, feed.drivers_dir)
    )
    assert drivers == 3 * 3 * 40
    assert feed.rows == orders + drivers
    assert feed.heat().sum() == orders
    assert 0 < feed.recent_heat().sum() < orders
    assert feed.hour == pytest.approx(8.0 + 90 / 3600)


def test_the_thread_writes_until_it_is_stopped(tmp_path: Path) -> None:
    feed = make(tmp_path, period_s=0.001)
    feed.start()
    deadline = time.monotonic() + 30
    while feed.rows < 1_000 and time.monotonic() < deadline:
        feed.check()
    feed.stop()
    written = len(list(feed.drivers_dir.iterdir()))
    assert written == len(list(feed.orders_dir.iterdir())) >= 3
    assert not list(tmp_path.rglob(".*"))
    feed.stop()  # once more does no harm


def test_a_failure_in_the_thread_is_raised(tmp_path: Path) -> None:
    feed = make(tmp_path)
    feed.orders_dir.rmdir()
    feed.start()
    feed._thread.join()
    with pytest.raises(FileNotFoundError):
        feed.check()
    with pytest.raises(FileNotFoundError):
        feed.stop()
