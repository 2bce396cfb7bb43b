"""What the demo reads out of progress records: each batch once, speeds, shares of load."""

from pathlib import Path

import numpy as np
import pytest

from skewless.lab.demo.contest import Contender
from skewless.lab.demo.feed import Feed
from skewless.lab.demo.summary import summarise
from skewless.lab.demo.track import Batch, Track
from skewless.lab.workloads import City

from .records import record


def test_a_record_becomes_a_batch() -> None:
    batch = Batch.of(record(3, duration_ms=750, cpu_ms=(30.0, 10.0)))
    assert (batch.number, batch.rows, batch.matches, batch.late) == (3, 1_000, 5_000, 0)
    assert batch.duration_s == 0.75
    assert batch.cpu_ms == (30.0, 10.0)
    assert batch.imbalance == 1.5
    assert batch.straggler_ms == 30.0
    assert batch.state_rows == 100


def test_each_batch_counts_once_and_in_order() -> None:
    track = Track()
    assert [batch.number for batch in track.add([record(1), record(0), record(1)])] == [0, 1]
    assert track.add([record(0), record(1)]) == []
    assert [batch.number for batch in track.add([record(1), record(2)])] == [2]
    assert track.next_number == 3
    assert track.rows == 3_000
    assert track.matches == 15_000


def test_records_of_idle_triggers_are_left_out() -> None:
    idle = {"batchId": 0, "timestamp": "2024-03-04T08:00:00.000Z", "durationMs": {"getOffset": 1}}
    assert Track().add([idle, idle | {"skewless": None}]) == []


def test_rates_are_per_second_of_wall_time_not_of_busy_time() -> None:
    track = Track()
    track.add(record(number) for number in range(20))  # one batch of 1,000 rows each second
    assert track.rate("rows") == pytest.approx(1_000)
    assert track.rate("matches") == pytest.approx(5_000)
    assert len(track.recent(5.0)) == 5


def test_the_first_batch_alone_is_measured_by_its_own_duration() -> None:
    track = Track()
    assert track.rate("rows") == 0.0
    assert track.steady_rate("rows") == 0.0
    track.add([record(0, duration_ms=500)])
    assert track.rate("rows") == pytest.approx(2_000)
    assert track.steady_rate("rows") == pytest.approx(2_000)


def test_the_summary_of_a_single_batch_has_its_speed(tmp_path: Path) -> None:
    """And that of several the speed without the first, in which Spark starts up."""
    feed = Feed(City(np.random.default_rng(3), drivers=20), tmp_path / "input", steps_per_file=1)
    contender = Contender("Hash", None, tmp_path)
    contender.track.add([record(0, duration_ms=500)])
    told = summarise([contender], feed, seed=3, instances=2)["queries"]["Hash"]
    assert (told["rows_per_second"], told["matches_per_second"]) == (2_000, 10_000)
    contender.track.add(record(number) for number in range(1, 4))
    told = summarise([contender], feed, seed=3, instances=2)["queries"]["Hash"]
    assert (told["rows_per_second"], told["matches_per_second"]) == (1_000, 5_000)


def test_loads_are_over_the_mean_and_without_the_first_batch() -> None:
    track = Track()
    track.add([record(0, cpu_ms=(90.0, 10.0))])
    assert track.loads().tolist() == [[1.8, 0.2]]
    track.add([record(1, cpu_ms=(30.0, 10.0)), record(2, cpu_ms=(1e-300, 0.0))])
    assert track.loads() == pytest.approx(np.array([[1.5, 0.5], [0.0, 0.0]]))


def test_changes_are_the_batches_after_which_something_is_different() -> None:
    track = Track()
    track.add(
        [
            record(0),
            record(1, moves=((3, 0, 1), (4, 1, 0)), splits=(11, 12)),
            record(2, splits=(11, 12)),
            record(3, splits=(12, 13)),
            record(4, splits=()),
        ]
    )
    changes = [(c.batch.number, len(c.batch.moves), c.split, c.folded) for c in track.changes]
    assert changes == [(1, 2, 2, 0), (3, 0, 1, 1), (4, 0, 0, 2)]
