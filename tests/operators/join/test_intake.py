"""What a join takes in: what is counted, what is dropped, and what is left, sorted."""

from pathlib import Path

import pyarrow as pa
import pytest

from skewless.engine.badrows import BadRowError
from skewless.engine.columns import HASH, LEFT_CODE, REPLICA, SIDE, TIME, key_name
from skewless.engine.dropped import Dropped
from skewless.operators.join.bounds import LEFT, RIGHT
from skewless.operators.join.intake import Intake
from skewless.operators.join.layout import Layout
from skewless.state.naming import BatchNames
from skewless.state.storage import Storage
from skewless.state.watermark import Delays

LAYOUT = Layout(
    keys=1,
    left_slots=(),
    right_slots=(),
    output=(),
    hash_is_key=False,
    inputs={side: (("k", key_name(0)), ("t", TIME)) for side in (LEFT, RIGHT)},
)


def intake(folder: Path, watermark_us: int | None, *, drop: bool = True) -> Intake:
    dropped = Dropped(Storage(str(folder)), BatchNames(0, 0, "a"), keep=False)
    delays = Delays({LEFT: 0, RIGHT: 0})
    return Intake(LAYOUT, delays, watermark_us, dropped, drop_bad_rows=drop)


def rows(*records: tuple[int, str | None, int | None]) -> pa.RecordBatch:
    """Code, key and time of every row; the hash is the length of the key."""
    codes, keys, times = zip(*records, strict=True)
    return pa.record_batch(
        {
            SIDE: pa.array(codes, pa.int8()),
            HASH: pa.array([len(key or "") for key in keys], pa.int64()),
            TIME: pa.array(times, pa.timestamp("us", "UTC")),
            key_name(0): pa.array(keys, pa.string()),
        }
    )


def test_every_row_is_counted_as_what_it_is(tmp_path: Path) -> None:
    taken = intake(tmp_path, watermark_us=10)
    found = taken.sort(
        rows(
            (LEFT_CODE, "long", 20),
            (LEFT_CODE, "x", 30),
            (LEFT_CODE, "x", 11),
            (LEFT_CODE, "x", 10),  # late: not after the watermark
            (LEFT_CODE, None, 40),
            (LEFT_CODE, "x", None),
            (LEFT_CODE + REPLICA, "x", 50),
            (LEFT_CODE + REPLICA, "x", 5),
        ),
        LEFT,
    )
    home = found.home
    assert (home.hashes.tolist(), home.times.tolist()) == ([1, 1, 4], [11, 30, 20])
    assert found.replicas.times.tolist() == [50]
    assert found.lone is None
    counts = (taken.rows, taken.late, taken.null_keys, taken.bad_rows, taken.replicas)
    assert [count[LEFT] for count in counts] == [6, 1, 1, 1, 1]
    assert [count[RIGHT] for count in counts] == [0] * 5
    # A row without a key moves event time; one that is at home elsewhere does not.
    assert taken.max_time_us == {LEFT: 40, RIGHT: None}


def test_a_bad_row_stops_the_batch_unless_it_is_dropped(tmp_path: Path) -> None:
    with pytest.raises(BadRowError, match="the left input"):
        intake(tmp_path, None, drop=False).sort(rows((LEFT_CODE, "x", None)), LEFT)
