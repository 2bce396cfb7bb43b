"""The live feed: complete files in time order, and counters that agree with them."""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skewless.lab.demo.feed import Feed
from skewless.lab.workloads.city import DRIVERS, ORDERS, City


def make(folder: Path, **changes: float) -> Feed:
    city = City(np.random.default_rng(5), drivers=40, start_hour=8.0, **changes)  # type: ignore[arg-type]
    return Feed(city, folder, steps_per_file=3)


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
    for _ in range(3):
        feed.write_next()
    orders, drivers = (
        sum(pq.read_metadata(file).num_rows for file in folder.iterdir())
        for folder in (feed.orders_dir, feed.drivers_dir)
    )
    assert drivers == 3 * 3 * 40
    assert feed.rows == orders + drivers
    assert feed.heat.sum() == orders
    assert 0 < feed.recent_heat.sum() < orders


def test_jumps_of_the_crowd_are_noted(tmp_path: Path) -> None:
    feed = make(tmp_path, jump_minutes=1.0)
    began_s = time.time()
    for _ in range(5):  # half a minute each
        feed.write_next()
    assert len(feed.jumps_s) == 2
    assert began_s <= feed.jumps_s[0] <= feed.jumps_s[1] <= time.time()
