"""The number of instances follows the load, and no result depends on it."""

from pathlib import Path

import pyarrow as pa

from skewless.operators.keyed.process import Count
from skewless.operators.keyed.windows import Windows
from skewless.planning.mixed import Mixed
from skewless.testing.local_keyed import LocalKeyed
from tests.operators.keyed.cases import SCHEMA, SECOND, table

WINDOW = Windows(4 * SECOND, 4 * SECOND)


def batches() -> list[pa.Table]:
    keys = ["x", "y", "hot", "hot", None]
    return [table([(keys[i % 5], i % 2, 8 * n + i % 8, i) for i in range(40)]) for n in range(16)]


def counted(folder: Path, policy: Mixed) -> LocalKeyed:
    run = LocalKeyed(str(folder), SCHEMA, ["k", "g"], "t", Count(), WINDOW, policy=policy)
    run.run(batches())
    return run


def rows(run: LocalKeyed) -> list[str]:
    return sorted(map(repr, run.rows().to_pylist()))


def test_instances_come_and_go_and_the_counts_stay(tmp_path: Path) -> None:
    fixed = counted(tmp_path / "fixed", Mixed(instances=1))
    # Any task works for longer than a nanosecond, and none for an hour.
    grown = counted(tmp_path / "grown", Mixed(instances=(1, 6), busy_ms=1e-6))
    shrunk = counted(tmp_path / "shrunk", Mixed(instances=(1, 2), busy_ms=3.6e6))
    used = {
        name: [p["operators"][0]["instances"] for p in run.progress]
        for name, run in (("grown", grown), ("shrunk", shrunk))
    }
    assert used["grown"][0] == 2
    assert used["grown"][-1] == 6
    assert used["shrunk"][0] == 2
    assert used["shrunk"][-1] == 1
    assert rows(grown) == rows(fixed) == rows(shrunk)
    assert fixed.rows().num_rows > 0
