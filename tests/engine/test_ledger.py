"""The account of a task: what it has written, merged away and counted is what its report says."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skewless.engine.columns import TIME
from skewless.engine.dropped import Dropped
from skewless.engine.intake import Taken
from skewless.engine.ledger import Ledger, live
from skewless.kernels.runs import SortedRun, sort_run
from skewless.load.report import read_reports
from skewless.state.compaction import Merge
from skewless.state.naming import BatchNames
from skewless.state.segment import open_segment
from skewless.state.storage import Storage

NAMES = BatchNames(3, 0, "a")
PARTITIONS = 4


def run_of(*times: int) -> SortedRun:
    moments = np.array(times, np.int64)
    rows = pa.record_batch({TIME: pa.array(moments).cast(pa.timestamp("us"))})
    return sort_run(moments.astype(np.uint64) << np.uint64(60), moments, rows, [], hash_is_key=True)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = Storage(str(tmp_path))
    for directory in ("segments", "reports"):
        storage.make_directory(f"{directory}/{NAMES.folder}")
    return storage


def test_the_report_names_what_was_written_and_what_it_replaces(storage: Storage) -> None:
    ledger = Ledger(storage, NAMES, PARTITIONS)
    ledger.count_rows("left", np.array([1, 1, 2], np.uint64))
    ledger.store(5, "left", run_of(1, 2))
    ledger.store(5, "left", run_of())
    ledger.store(5, "right", run_of(3))
    old = tuple(ledger.written[:1])
    ledger.merge(5, [Merge("left", 9, old)], lambda merge, runs: live(runs[0], 2))
    ledger.matches += 7
    taken = Taken({"left": 3}, {"left": 0}, {"left": 1}, {"left": 0}, {"left": 0}, {"left": 2})
    ledger.close(5, taken, Dropped(storage, NAMES, keep=False))
    (report,) = read_reports(storage, [NAMES.report(5)])
    assert (report.rows, report.late, report.max_time_us) == ({"left": 3}, {"left": 1}, {"left": 2})
    assert report.matches == 7
    assert [(s.side, s.rows, s.instance, s.level) for s in report.segments] == [
        ("left", 2, 5, 0),
        ("right", 1, 5, 0),
        ("left", 1, 9, 1),
    ]
    assert report.replaced == [old[0].name]
    assert open_segment(storage, report.segments[2], TIME).times.tolist() == [2]
    assert sum(report.partitions.rows) == 3


def test_what_lives_no_more_leaves_no_segment(storage: Storage) -> None:
    ledger = Ledger(storage, NAMES, PARTITIONS)
    ledger.store(0, "left", run_of(1))
    ledger.merge(0, [Merge("left", 0, tuple(ledger.written))], lambda merge, runs: None)
    assert len(ledger.written) == 1
    assert live(run_of(1, 2, 3), None).times.tolist() == [1, 2, 3]
    assert live(run_of(1, 2, 3), 2).times.tolist() == [2, 3]


def test_a_run_that_is_done_again_leaves_other_files(storage: Storage) -> None:
    """A report names only what its own run has written."""
    names = []
    for _ in range(2):
        ledger = Ledger(storage, NAMES, PARTITIONS)
        ledger.store(0, "left", run_of(1))
        names.append(ledger.written[0].name)
    assert names[0] != names[1]
