"""The stream of trades: hot symbols that change in the middle, and event times in order."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skewless.errors import SkewlessError
from skewless.lab.workloads.trades import SCHEMA, Trades


def generate(count: int = 4, seed: int = 1) -> list[pa.Table]:
    return list(Trades().batches(np.random.default_rng(seed), rows=5_000, count=count))


def hottest(table: pa.Table) -> str:
    counts = table["symbol"].value_counts().to_pylist()
    return str(max(counts, key=lambda entry: entry["counts"])["values"])


def test_batches_follow_each_other() -> None:
    made = generate()
    assert [(t.schema, t.num_rows) for t in made] == [(SCHEMA, 5_000)] * 4
    for earlier, later in pairwise(made):
        assert pc.max(earlier["at"]).as_py() < pc.min(later["at"]).as_py()
    assert made == generate()
    assert pc.min(pc.abs(made[0]["shares"])).as_py() >= 1


def test_other_symbols_are_hot_from_the_middle_on() -> None:
    names = [hottest(table) for table in generate()]
    assert names[0] == names[1] != names[2] == names[3]


def test_symbols_are_as_many_as_the_papers() -> None:
    every = pa.concat_tables(generate(count=8))
    assert len(every["symbol"].unique()) == 1_036


@pytest.mark.parametrize(
    ("name", "value"), [("symbols", 0), ("exponent", float("nan")), ("rows_per_second", -1.0)]
)
def test_wrong_arguments_are_named(name: str, value: float) -> None:
    with pytest.raises(SkewlessError, match=name):
        Trades(**{name: value})  # type: ignore[arg-type]
