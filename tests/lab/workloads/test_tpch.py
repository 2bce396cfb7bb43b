"""TPC-H's tables as streams: whole days per batch, real keys redrawn with skew, a change."""

import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skewless.errors import SkewlessError
from skewless.lab.workloads import tpch
from skewless.lab.workloads.tpch import Tpch

BATCHES = 4


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tpch:
    return tpch.generate(tmp_path_factory.mktemp("tpch"), 0.001)


def change_of(tables: Tpch) -> int:
    return int(tpch.boundaries(tables, BATCHES)[1])


def hottest(column: pa.ChunkedArray) -> tuple[int, float]:
    """The most frequent value, and its share."""
    top = max(column.value_counts().to_pylist(), key=lambda entry: entry["counts"])
    return top["values"], top["counts"] / len(column)


def test_an_order_is_shipped_within_the_days_that_the_join_looks_at(tables: Tpch) -> None:
    both = tables.lineitem.join(tables.orders, "l_orderkey", "o_orderkey", "inner")
    assert both.num_rows == tables.lineitem.num_rows
    days = pc.days_between(both["o_orderdate"], both["l_shipdate"])
    least, most = tpch.SHIPPED_AFTER_DAYS
    assert pc.min(days).as_py() >= least
    assert pc.max(days).as_py() <= most


def test_batches_are_all_rows_in_order_and_no_day_is_in_two(tables: Tpch) -> None:
    made = list(tpch.batches(tables, BATCHES))
    assert pa.concat_tables(orders for orders, _ in made) == tables.orders
    assert pa.concat_tables(items for _, items in made) == tables.lineitem
    for earlier, later in pairwise(made):
        for before, after, column in zip(
            earlier, later, ("o_orderdate", "l_shipdate"), strict=True
        ):
            assert pc.max(before[column]).as_py() < pc.min(after[column]).as_py()
    sizes = [orders.num_rows + items.num_rows for orders, items in made]
    assert max(sizes) < 1.1 * min(sizes)


def test_keys_are_skewed_exist_and_change_in_the_middle(tables: Tpch) -> None:
    skewed = tpch.skewed(tables, np.random.default_rng(2), change_of(tables))
    assert pc.all(pc.is_in(skewed.orders["o_custkey"], tables.customer["c_custkey"])).as_py()
    assert pc.all(pc.is_in(skewed.lineitem["l_suppkey"], tables.supplier["s_suppkey"])).as_py()
    made = list(tpch.batches(skewed, BATCHES))
    names = [hottest(items["l_suppkey"])[0] for _, items in made]
    assert names[0] == names[1] != names[2] == names[3]
    assert hottest(made[0][0]["o_custkey"])[1] > 3 * hottest(tables.orders["o_custkey"])[1]
    # Nothing else is touched.
    assert skewed.orders.drop(["o_custkey"]) == tables.orders.drop(["o_custkey"])
    assert skewed.lineitem.drop(["l_suppkey"]) == tables.lineitem.drop(["l_suppkey"])


def test_a_missing_program_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpch.shutil, "which", lambda *_, **__: None)
    with pytest.raises(SkewlessError, match=r"pip install 'skewless\[reproduce\]'"):
        tpch.generator()


def test_what_the_program_says_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "no space left\n")
    monkeypatch.setattr(tpch.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SkewlessError, match="no space left"):
        tpch.generate(tmp_path, 0.001)


def test_wrong_arguments_are_named(tables: Tpch, tmp_path: Path) -> None:
    with pytest.raises(SkewlessError, match="scale_factor"):
        tpch.generate(tmp_path, 0.0)
    with pytest.raises(SkewlessError, match="count"):
        tpch.boundaries(tables, 0)
    with pytest.raises(SkewlessError, match="fewer batches than there are days"):
        tpch.boundaries(tables, 100_000)
