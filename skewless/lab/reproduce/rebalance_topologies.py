"""The rebalancing paper's continuous queries (§V), written with Skewless's operators."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.errors import bad_argument
from skewless.lab.workloads import tpch
from skewless.lab.workloads.streams import write_stream, write_table
from skewless.lab.workloads.trades import Trades
from skewless.lab.workloads.words import Words
from skewless.planning.hash import Hash
from skewless.planning.mixed import Mixed
from skewless.planning.pkg import PKG
from skewless.planning.readj import Readj

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from skewless.runtime.stream import Stream

# The paper's Fig. 14 has every system's best throughput, and both of its ratios, at this θmax.
THETA_MAX = 0.02
# So far back a word's appearances are counted where its rows are kept.
RECENT_US = 30_000_000
REGION = "ASIA"


@dataclass(frozen=True)
class Size:
    """How much is run."""

    batches: int
    word_rows: int  # per batch
    trade_rows: int  # per batch
    scale_factor: float  # of TPC-H, all batches together

    def __post_init__(self) -> None:
        if self.batches < 2:
            raise bad_argument("batches", self.batches, "at least 2: something changes in between")


@dataclass(frozen=True)
class Topology:
    """A query of the paper: how its input is made, and how it runs under a policy."""

    name: str
    title: str
    policies: tuple[str, ...]
    write: Callable[[Path, Size, np.random.Generator], None]
    stream: Callable[["SparkSession", Path, str, int], "Stream"]


def policy(name: str, instances: int) -> Any:
    """A system of the paper as a policy."""
    if name == "Hash":
        return Hash(instances)
    planner: Any = {"Readj": Readj, "Mixed": Mixed, "PKG": PKG}[name]
    return planner(instances=instances, threshold=THETA_MAX)


def replay(spark: "SparkSession", folder: Path, schema: str) -> "DataFrame":
    """The files of a folder as a stream, one in every batch."""
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _write_words(folder: Path, size: Size, rng: np.random.Generator) -> None:
    write_stream(folder / "words", Words().batches(rng, rows=size.word_rows, count=size.batches))


def _words(spark: "SparkSession", folder: Path) -> "DataFrame":
    return replay(spark, folder / "words", "word string, at timestamp")


def word_count(spark: "SparkSession", folder: Path, system: str, instances: int) -> "Stream":
    """How often every word occurs in every second."""
    import skewless as sk

    return sk.keyed(
        _words(spark, folder), "word", time="at", window="1 second", process=sk.Count(),
        balance=policy(system, instances),
    )  # fmt: skip


def appearances(batch: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    """How often a word has appeared in the last `RECENT_US` at each of its appearances.

    Keeps the appearances themselves, as the paper's word count does: nothing can be added up
    before a word's rows are together.
    """
    new = batch.select(["word", "at"])
    rows = new if state is None else pa.concat_tables([state, new])
    words = pc.dictionary_encode(rows["word"].combine_chunks()).indices.cast(pa.int64())
    times = rows["at"].cast(pa.int64()).to_numpy()
    if not len(times):
        return _with_count(new, np.zeros(0, np.int64)), new
    # Word and time in one number, so that one search is done for all words at once. Times apart
    # by more than what is looked back keep words apart.
    since = times - times.min()
    place = words.to_numpy() * (int(since.max()) + RECENT_US + 1) + since
    ordered = np.sort(place)
    asked = place[rows.num_rows - new.num_rows :]
    upto = np.searchsorted(ordered, asked, side="right")
    count = upto - np.searchsorted(ordered, asked - RECENT_US, side="left")
    recent = rows.filter(pa.array(times >= times.max() - RECENT_US))
    return _with_count(new, count), recent


def _with_count(rows: pa.Table, count: "np.ndarray[Any, np.dtype[np.int64]]") -> pa.Table:
    return rows.append_column("appearances", pa.array(count, pa.int64()))


def word_history(spark: "SparkSession", folder: Path, system: str, instances: int) -> "Stream":
    """The same question as a function with state of its own, which no combiner can shrink."""
    import skewless as sk
    from skewless.errors import StateGrowsWarning

    with warnings.catch_warnings():
        # A word that never comes again keeps its last rows; the run is short.
        warnings.simplefilter("ignore", StateGrowsWarning)
        return sk.keyed(
            _words(spark, folder), "word", time="at", process=appearances,
            balance=policy(system, instances),
        )  # fmt: skip


def _write_trades(folder: Path, size: Size, rng: np.random.Generator) -> None:
    tables = Trades().batches(rng, rows=size.trade_rows, count=size.batches)
    write_stream(folder / "trades", tables)


def self_join(spark: "SparkSession", folder: Path, system: str, instances: int) -> "Stream":
    """Who bought and sold a symbol within ten seconds: all pairs of its trades, then filtered."""
    from pyspark.sql import functions as F

    import skewless as sk

    def dense(pairs: "DataFrame") -> "DataFrame":
        opposite = F.col("shares") * F.col("shares_right") < 0
        return pairs.where((F.col("account") == F.col("account_right")) & opposite)

    schema = "symbol string, at timestamp, account long, shares long"
    pairs = sk.keyed(
        replay(spark, folder / "trades", schema), "symbol", time="at",
        process=sk.SelfJoin(within="10 seconds"), balance=policy(system, instances),
    )  # fmt: skip
    return pairs.transform(dense)


def _write_tpch(folder: Path, size: Size, rng: np.random.Generator) -> None:
    tables = tpch.generate(folder / "generated", size.scale_factor)
    change = tpch.boundaries(tables, size.batches)[(size.batches - 1) // 2]
    tables = tpch.skewed(tables, rng, int(change))
    orders, lineitem = zip(*tpch.batches(tables, size.batches), strict=True)
    write_stream(folder / "orders", orders)
    write_stream(folder / "lineitem", lineitem)
    for name, table in tables.statics.items():
        write_table(table, folder / f"{name}.parquet")


def q5(spark: "SparkSession", folder: Path, system: str, instances: int) -> "Stream":
    """TPC-H's query 5 on streams: revenue per nation of a region and 91 days of order dates.

    Orders meet their line items in a join; customers, suppliers, nations and regions do not
    change, and are looked up in every batch of its result.
    """
    from pyspark.sql import functions as F

    import skewless as sk

    def static(name: str) -> "DataFrame":
        return spark.read.parquet(str(folder / f"{name}.parquet"))

    region = static("region").where(F.col("r_name") == REGION)
    nation = static("nation").join(region, F.col("n_regionkey") == F.col("r_regionkey"))
    customer = static("customer").join(nation, F.col("c_nationkey") == F.col("n_nationkey"))
    # Small, and the same in every batch: joined once.
    customer = customer.select("c_custkey", "c_nationkey", "n_name").cache()
    supplier = static("supplier").cache()

    def revenue(sold: "DataFrame") -> "DataFrame":
        price = F.col("l_extendedprice") * (1 - F.col("l_discount"))
        local = (F.col("l_suppkey") == F.col("s_suppkey")) & (
            F.col("c_nationkey") == F.col("s_nationkey")
        )
        return (
            sold.join(F.broadcast(customer), F.col("o_custkey") == F.col("c_custkey"))
            .join(F.broadcast(supplier), local)
            .select("n_name", "o_orderdate", price.cast("decimal(18, 4)").alias("revenue"))
        )

    orders = "o_orderkey long, o_custkey long, o_orderdate timestamp"
    lineitem = (
        "l_orderkey long, l_suppkey long, l_extendedprice decimal(15, 2), "
        "l_discount decimal(15, 2), l_shipdate timestamp"
    )
    first, last = (f"{days} days" for days in tpch.SHIPPED_AFTER_DAYS)
    sold = sk.join(
        replay(spark, folder / "orders", orders),
        replay(spark, folder / "lineitem", lineitem),
        on=[("o_orderkey", "l_orderkey")],
        time=("o_orderdate", "l_shipdate"),
        within=(first, last),
        # PKG is for what can be combined, which a join cannot.
        balance=policy("Hash" if system == "PKG" else system, instances),
    )
    return sk.keyed(
        sold.transform(revenue), "n_name", time="o_orderdate", window="91 days",
        process=sk.Agg({"revenue": ("sum", "revenue")}), balance=policy(system, instances),
    )  # fmt: skip


WHOLE_KEYS = ("Hash", "Readj", "Mixed")
TOPOLOGIES = (
    Topology(
        "words", "word count, 1 s windows", (*WHOLE_KEYS, "PKG"), _write_words, word_count
    ),
    Topology(
        "history", "word count with rows as state", WHOLE_KEYS, _write_words, word_history
    ),
    Topology(
        "trades", "self-join of stock trades within 10 s", WHOLE_KEYS, _write_trades, self_join
    ),
    Topology("q5", "TPC-H Q5", (*WHOLE_KEYS, "PKG"), _write_tpch, q5),
)  # fmt: skip
