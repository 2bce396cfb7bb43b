"""The tables of TPC-H's query 5 as streams: orders and line items in event time, skewed keys."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skewless.errors import SkewlessError, bad_argument
from skewless.lab.workloads.streams import TIMESTAMP
from skewless.lab.workloads.zipf import Zipf

GENERATOR = "tpchgen-cli"
# By TPC-H's definition an order is shipped so many days after its date.
SHIPPED_AFTER_DAYS = (1, 121)
ZIPF = 0.8  # the paper's
_COLUMNS = {
    "orders": ("o_orderkey", "o_custkey", "o_orderdate"),
    "lineitem": ("l_orderkey", "l_suppkey", "l_extendedprice", "l_discount", "l_shipdate"),
    "customer": ("c_custkey", "c_nationkey"),
    "supplier": ("s_suppkey", "s_nationkey"),
    "nation": ("n_nationkey", "n_name", "n_regionkey"),
    "region": ("r_regionkey", "r_name"),
}
TABLES = tuple(_COLUMNS)

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tpch:
    """What query 5 reads; orders and line items are in the order of their event times.

    Dates are timestamps at midnight, UTC. Column names are TPC-H's.
    """

    orders: pa.Table
    lineitem: pa.Table
    customer: pa.Table
    supplier: pa.Table
    nation: pa.Table
    region: pa.Table

    @property
    def statics(self) -> dict[str, pa.Table]:
        """The tables that do not stream, by name."""
        return {name: getattr(self, name) for name in ("customer", "supplier", "nation", "region")}


def generator() -> str:
    """The path of the program that makes the tables; says what to install where there is none."""
    # Beside this interpreter first: its environment need not be activated.
    beside = shutil.which(GENERATOR, path=str(Path(sys.executable).parent))
    found = beside or shutil.which(GENERATOR)
    if found is None:
        raise SkewlessError(
            f"TPC-H's tables are made by {GENERATOR}, which is not installed; "
            "pip install 'skewless[reproduce]' brings it"
        )
    return found


def generate(folder: Path, scale_factor: float) -> Tpch:
    """Make the tables in `folder` and read what query 5 needs of them."""
    if not (np.isfinite(scale_factor) and scale_factor > 0):
        raise bad_argument("scale_factor", scale_factor, "a number above 0, such as 0.01")
    program = generator()
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--tables", ",".join(TABLES), "--output-dir", str(folder), "--overwrite", "--quiet"]
    done = subprocess.run(
        [program, "parquet", "--scale-factor", str(scale_factor), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SkewlessError(f"{GENERATOR} failed: {done.stderr.strip() or done.stdout.strip()}")
    tables = {name: _read(folder / f"{name}.parquet", _COLUMNS[name]) for name in TABLES}
    return Tpch(
        **tables
        | {
            "orders": tables["orders"].sort_by("o_orderdate"),
            "lineitem": tables["lineitem"].sort_by("l_shipdate"),
        }
    )


def skewed(tables: Tpch, rng: np.random.Generator, change_us: int, exponent: float = ZIPF) -> Tpch:
    """The same with Zipf-distributed customers and suppliers, which change at `change_us`."""
    customers = _redrawn(
        rng, tables.customer["c_custkey"], _times(tables.orders, "o_orderdate"), change_us, exponent
    )
    suppliers = _redrawn(
        rng,
        tables.supplier["s_suppkey"],
        _times(tables.lineitem, "l_shipdate"),
        change_us,
        exponent,
    )
    return replace(
        tables,
        orders=_with_column(tables.orders, "o_custkey", customers),
        lineitem=_with_column(tables.lineitem, "l_suppkey", suppliers),
    )


def boundaries(tables: Tpch, count: int) -> Times:
    """Where `count` batches of about equally many rows end, all but the last, in µs.

    Whole days: the rows of a day are never in two batches, so that none is late.
    """
    if count < 1:
        raise bad_argument("count", count, "at least 1")
    both = (_times(tables.orders, "o_orderdate"), _times(tables.lineitem, "l_shipdate"))
    times = np.sort(np.concatenate(both))
    ends = times[np.arange(1, count) * len(times) // count]
    if len(np.unique(ends)) < count - 1:
        raise bad_argument("count", count, "fewer batches than there are days")
    return ends


def batches(tables: Tpch, count: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield (orders, line items) per batch, in the order of event times."""
    ends = boundaries(tables, count)
    slices = (
        _slices(tables.orders, "o_orderdate", ends),
        _slices(tables.lineitem, "l_shipdate", ends),
    )
    return zip(*slices, strict=True)


def _read(path: Path, columns: tuple[str, ...]) -> pa.Table:
    table = pq.read_table(path, columns=list(columns))
    return pa.table({name: _plain(table[name]) for name in columns})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates as timestamps, and text as Spark's reader takes it."""
    if pa.types.is_date(column.type):
        return column.cast(pa.timestamp("us")).cast(TIMESTAMP)
    return column.cast(pa.string()) if column.type == pa.string_view() else column


def _times(table: pa.Table, column: str) -> Times:
    times: Times = table[column].cast(pa.int64()).to_numpy()
    return times


def _redrawn(
    rng: np.random.Generator,
    keys: pa.ChunkedArray,
    times: Times,
    change_us: int,
    exponent: float,
) -> pa.ChunkedArray:
    before, after = (Zipf(exponent, len(keys), rng) for _ in range(2))
    drawn = np.where(times < change_us, before.sample(len(times)), after.sample(len(times)))
    return pc.take(keys, pa.array(drawn))


def _with_column(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def _slices(table: pa.Table, column: str, ends: Times) -> Iterator[pa.Table]:
    cuts = [0, *np.searchsorted(_times(table, column), ends).tolist(), table.num_rows]
    return (table.slice(a, b - a) for a, b in pairwise(cuts))
