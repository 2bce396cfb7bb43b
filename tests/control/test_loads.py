"""Reports become loads: smoothed, per partition, with the rows that are stored."""

import numpy as np

from skewless.control.loads import loads_of, smoothed, stored_rows
from skewless.control.memory import Balance
from skewless.load.report import HotKeyLoad
from skewless.routing.partitions import packed
from tests.control.test_loop import report
from tests.state.examples import segment


def test_the_newest_batch_weighs_most_and_another_number_of_partitions_starts_anew() -> None:
    now, before = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert smoothed(None, now).tolist() == [1.0, 0.0]
    np.testing.assert_allclose(smoothed(before, now), [0.7, 0.3])
    assert smoothed(np.ones(3), now).tolist() == [1.0, 0.0]


def test_stored_rows_are_shared_by_the_partitions_of_a_segment() -> None:
    segments = [
        segment("a", rows=30, partitions=packed([0, 1]), of_partitions=4),
        segment("b", rows=5, partitions=packed([3]), of_partitions=4),
    ]
    found = stored_rows(segments, np.array([2.0, 1.0, 9.0, 0.0]))
    np.testing.assert_allclose(found, [20.0, 10.0, 0.0, 5.0], atol=1e-6)


def test_a_key_is_one_key_whoever_reports_it_and_no_heavier_than_its_partition() -> None:
    reports = [
        report(0, {0: 100}, (HotKeyLoad(5, {"left": 40, "right": 0}, 10),)),
        report(
            1,
            {0: 100, 3: 10},
            (HotKeyLoad(5, {"left": 30, "right": 20}, 5), HotKeyLoad(7, {"input": 1}, 0)),
        ),
    ]
    loads, balance = loads_of(Balance.initial(2), 4, reports, ())
    assert loads.rows.tolist() == [200.0, 0.0, 0.0, 10.0]
    assert [(k.hash, k.left_rows, k.right_rows) for k in loads.hot_keys] == [
        (5, 70, 20),
        (7, 1, 0),
    ]
    assert loads.hot_keys[0].load <= loads.load[0]
    assert balance.rows is loads.rows
    assert loads.work_ms == tuple(r.cpu_ms for r in reports)
