"""What the demo reads out of progress records: each batch once, speeds, shares of load."""

import pytest

from skewless.demo.track import Batch, Track

from .records import record


def test_a_record_becomes_a_batch() -> None:
    batch = Batch.of(record(3, duration_ms=750, cpu_ms=(30.0, 10.0)))
    assert (batch.number, batch.rows, batch.matches, batch.late) == (3, 1_000, 5_000, 0)
    assert batch.duration_s == 0.75
    assert batch.cpu_ms == (30.0, 10.0)
    assert batch.imbalance == 1.5
    assert (batch.state_rows, batch.state_bytes) == (100, 4_000)


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
    track.add([record(0, duration_ms=500)])
    assert track.rate("rows") == pytest.approx(2_000)


def test_load_shares_are_of_cpu_time_lately_and_altogether() -> None:
    track = Track()
    assert track.load_shares() == []
    track.add([record(0, end_s=1, cpu_ms=(90.0, 10.0)), record(1, end_s=60, cpu_ms=(10.0, 10.0))])
    assert track.load_shares() == pytest.approx([0.5, 0.5])
    assert track.load_shares(None) == pytest.approx([100 / 120, 20 / 120])
    idle = Track()
    idle.add([record(0, cpu_ms=(1e-300, 0.0))])
    assert sum(idle.load_shares()) <= 1
