"""The stream of words: Zipf's law, a slow drift, and event times that never go back."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skewless.errors import SkewlessError
from skewless.lab.workloads.words import SCHEMA, Words


def generate(words: Words, *, rows: int = 2_000, count: int = 3, seed: int = 1) -> list[pa.Table]:
    return list(words.batches(np.random.default_rng(seed), rows=rows, count=count))


def hottest(table: pa.Table) -> str:
    counts = table["word"].value_counts().to_pylist()
    return str(max(counts, key=lambda entry: entry["counts"])["values"])


def test_batches_follow_each_other_and_equal_seeds_give_equal_words() -> None:
    made = generate(Words(words=500))
    assert [t.schema for t in made] == [SCHEMA] * 3
    times = np.concatenate([t["at"].cast(pa.int64()).to_numpy() for t in made])
    assert (np.diff(times) >= 0).all()
    for earlier, later in pairwise(made):
        assert pc.max(earlier["at"]).as_py() < pc.min(later["at"]).as_py()
    assert made == generate(Words(words=500))
    assert made != generate(Words(words=500), seed=2)


def test_the_hottest_word_has_its_share() -> None:
    (table,) = generate(Words(words=100, exponent=1.0), rows=50_000, count=1)
    share = pc.sum(pc.equal(table["word"], hottest(table))).as_py() / table.num_rows
    assert share == pytest.approx(1 / sum(1 / r for r in range(1, 101)), rel=0.05)


def test_without_drift_the_hottest_stays_and_with_all_of_it_it_goes() -> None:
    still = generate(Words(words=100, exponent=1.5, drift=0.0))
    assert len({hottest(t) for t in still}) == 1
    moving = generate(Words(words=100, exponent=1.5, drift=1.0))
    assert hottest(moving[0]) != hottest(moving[1])


@pytest.mark.parametrize(
    ("name", "value"),
    [("words", 1), ("exponent", -1.0), ("drift", 1.5), ("rows_per_second", 0.0)],
)
def test_wrong_arguments_are_named(name: str, value: float) -> None:
    with pytest.raises(SkewlessError, match=name):
        Words(**{name: value})  # type: ignore[arg-type]
