"""As-of joins on Spark: the closest row in time, across restarts, as the oracle says."""

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import skewless as sk
from skewless.testing import POINTS, Fault, Replay, assert_same_rows, join_oracle

from .batches import batches

BETWEEN = ("-12 seconds", "8 seconds")


def one_per_moment(made: list[tuple[pa.Table, pa.Table]]) -> list[tuple[pa.Table, pa.Table]]:
    """Without a second right row of one key and time: which of them is closest nobody can say."""
    seen: set[tuple[str, object]] = set()
    kept = []
    for left, right in made:
        rows = []
        for row in right.to_pylist():
            if (row["k"], row["rt"]) not in seen:
                seen.add((row["k"], row["rt"]))
                rows.append(row)
        kept.append((left, pa.Table.from_pylist(rows, right.schema)))
    return kept


def test_the_closest_row_is_given_once_whatever_dies(spark: SparkSession, tmp_path: Path) -> None:
    made = one_per_moment(batches(6, seed=3))
    faults = [Fault(point, batch) for batch, point in enumerate(POINTS)]
    for direction, some in (("backward", faults), ("forward", []), ("nearest", faults[1:3])):
        match = sk.AsOf(direction)
        replay = Replay(spark, tmp_path / direction, made)
        rows = replay.run(
            lambda left, right, match=match: sk.join(
                left,
                right,
                on="k",
                match=match,
                time=("lt", "rt"),
                within=BETWEEN,
                watermark="20 seconds",
                balance=sk.Auto(instances=2),
            ),
            some,
        )
        expected = join_oracle(
            made,
            on=[("k", "k")],
            time=("lt", "rt"),
            within=BETWEEN,
            watermark=("20 seconds", "20 seconds"),
            match=match,
        )
        assert expected.num_rows > 20
        assert_same_rows(rows, expected)
