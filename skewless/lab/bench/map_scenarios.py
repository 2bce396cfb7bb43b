"""What the map benchmark works on: rows whose costs differ by whom they mention, or not at all."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skewless.errors import bad_argument
from skewless.lab.bench.map_child import DYNAMIC, PLAIN, SKEWLESS
from skewless.lab.reproduce.online.streams import TWEET_MS, draw_tweets
from skewless.lab.workloads.streams import write_stream

SEED = 7
INSTANCES = 10
CLASSES, MENTIONS, LARGER, BURST, EVEN = "classes", "mentions", "larger", "burst", "even"
KIND, MENTION = "kind", "mention"
_SCHEMA = pa.schema(
    [
        ("batch", pa.int32()),
        ("id", pa.int64()),
        (MENTION, pa.string()),
        (KIND, pa.string()),
        ("cost_ms", pa.float64()),
    ]
)
_KINDS = dict(zip(TWEET_MS, ("medium", "politician", "other"), strict=True))
# What the name of an account that belongs to a newspaper or a station is likely to contain.
MEDIA = (
    "news|cnn|fox|nbc|abc|cbs|times|post|press|radio|npr|wsj|politico|thehill|tv|herald|tribune|"
    "journal|reuters|cspan|bloomberg|media|pbs"
)


@dataclass(frozen=True)
class Mentions:
    """Who is mentioned, row by row, and what such a row costs."""

    names: pa.StringArray
    costs_ms: npt.NDArray[np.float64]

    def first(self, rows: int) -> "Mentions":
        return Mentions(self.names[:rows], self.costs_ms[:rows])

    def shares(self) -> dict[str, float]:
        """How many of all rows are of each class."""
        return {f"{ms:g} ms": float((self.costs_ms == ms).mean()) for ms in TWEET_MS}

    def new_share(self, first: int) -> float:
        """How many of the rows from `first` on mention somebody whom no row before them did.

        >>> Mentions(pa.array(["a", "b", "a", "c"]), np.ones(4)).new_share(2)
        0.5
        """
        _, met = np.unique(pc.dictionary_encode(self.names).indices.to_numpy(), return_index=True)
        return float((met >= first).sum() / max(1, len(self.names) - first))


def drawn_mentions(rows: int) -> Mentions:
    """A stand-in for the POSG paper's tweets."""
    stream = draw_tweets(np.random.default_rng(SEED), tuples=rows)
    return Mentions(pa.array([f"entity {item}" for item in stream.items]), stream.costs)


def read_mentions(path: Path, rows: int) -> Mentions:
    """Rows from all over a parquet file with the columns `author` and `mention`, in its order.

    A stream has hours in which all rows are alike; a few of its batches would say little. The
    paper's classes: media by their names, politicians are who writes, and the others.
    """
    try:
        table = pq.read_table(path, columns=["author", "mention"])
    except (OSError, pa.ArrowException) as failure:
        takes = f"a parquet file with the columns author and mention ({failure})"
        raise bad_argument("mentions", str(path), takes) from failure
    if table.num_rows < rows:
        raise bad_argument("mentions", f"{table.num_rows} rows", f"a file of at least {rows}")
    authors = pc.unique(pc.utf8_lower(table.column("author")))
    step = table.num_rows // rows
    names = pc.utf8_lower(table.column("mention").combine_chunks())[::step][:rows]
    writes = pc.is_in(names, authors).to_numpy(zero_copy_only=False)
    reports = pc.match_substring_regex(names, MEDIA).to_numpy(zero_copy_only=False)
    media, politician, other = TWEET_MS
    return Mentions(names, np.where(writes, politician, np.where(reports, media, other)))


@dataclass(frozen=True)
class MapScenario:
    """A stream, mapped by each of several engines."""

    name: str
    title: str
    engines: tuple[str, ...]
    rows_per_batch: int
    batches: int
    warm_up: int  # batches before the figures: Java has compiled, costs are known
    cost_key: str = KIND
    even_ms: float | None = None  # what all rows cost; None: it depends on who is mentioned
    repeats: int = 1  # of all engines in turn, where small differences count

    @property
    def rows(self) -> int:
        return self.rows_per_batch * self.batches

    def describe(self) -> dict[str, Any]:
        """The parameters, for the record."""
        return {
            "instances": INSTANCES,
            "rows_per_batch": self.rows_per_batch,
            "batches": self.batches,
            "warm_up": self.warm_up,
            "cost_key": self.cost_key,
            "even_ms": self.even_ms,
            "repeats": self.repeats,
            "seed": SEED,
        }

    def write(self, mentions: Mentions, folder: Path) -> Path:
        """One parquet file per batch."""
        return write_stream(folder, self._tables(mentions))

    def _tables(self, mentions: Mentions) -> Iterator[pa.Table]:
        size = self.rows_per_batch
        costs = mentions.costs_ms
        if self.even_ms is not None:
            costs = np.full(len(costs), self.even_ms)
        for number in range(self.batches):
            rows = slice(number * size, (number + 1) * size)
            yield pa.table(
                [
                    np.full(size, number, np.int32),
                    np.arange(rows.start, rows.stop),
                    mentions.names[rows],
                    [_KINDS[cost] for cost in mentions.costs_ms[rows].tolist()],
                    costs[rows],
                ],
                schema=_SCHEMA,
            )


# Small batches are where chance helps least; in larger ones it evens out more of the work.
# Java needs some thousand tasks until it starts them quickly, and all start on the same few cores.
FULL = (
    MapScenario(
        name=CLASSES,
        title="10 instances, rows of 25, 5 and 1 ms, 200 in a batch, cost by class",
        engines=(PLAIN, DYNAMIC, "roundrobin", "posg", SKEWLESS),
        rows_per_batch=200,
        batches=230,
        warm_up=150,
    ),
    MapScenario(
        name=MENTIONS,
        title="The same, cost by mention: many are never met before",
        engines=(PLAIN, SKEWLESS),
        rows_per_batch=200,
        batches=140,
        warm_up=60,
        cost_key=MENTION,
    ),
    MapScenario(
        name=LARGER,
        title="10 instances, rows of 25, 5 and 1 ms, 1,000 in a batch",
        engines=(PLAIN, DYNAMIC, SKEWLESS),
        rows_per_batch=1_000,
        batches=60,
        warm_up=30,
    ),
    MapScenario(
        name=BURST,
        title="10 instances, rows of 25, 5 and 1 ms, 4,000 in a batch",
        engines=(PLAIN, DYNAMIC, SKEWLESS),
        rows_per_batch=4_000,
        batches=16,
        warm_up=6,
    ),
    MapScenario(
        name=EVEN,
        title="10 instances, every row 5 ms, 10,000 in a batch",
        engines=(PLAIN, SKEWLESS),
        rows_per_batch=10_000,
        batches=9,
        warm_up=4,
        even_ms=5.0,
        repeats=2,
    ),
)


def _small(scenario: MapScenario) -> MapScenario:
    return replace(
        scenario,
        engines=(PLAIN, SKEWLESS),
        rows_per_batch=min(200, scenario.rows_per_batch),
        batches=3,
        warm_up=2,
        repeats=1,
    )


QUICK = tuple(_small(scenario) for scenario in FULL)
