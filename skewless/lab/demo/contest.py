"""One of the demo's two queries: what it reads, and what it has told so far."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from skewless.lab.demo.feed import Feed
from skewless.lab.demo.track import Track


@dataclass
class Contender:
    """A running query, what it has told so far, and where its results go."""

    name: str
    query: Any
    results: Path
    track: Track = field(default_factory=Track)
    reads: tuple[str, ...] = ("orders", "drivers")  # names of `Feed.counts`

    def look(self) -> None:
        """Take up what the query tells; raises what made it stop, if it has."""
        if not self.query.isActive:
            raise self.query.exception() or RuntimeError(f"{self.name} stopped by itself")
        last = self.query.lastProgress
        if last is None or not last.get("skewless"):
            return
        # The list of recent records is long and slow to fetch: only where the last is not enough.
        skipped = last["skewless"]["batchId"] > self.track.next_number
        self.track.add(self.query.recentProgress if skipped else [last])

    def is_done_with(self, feed: Feed) -> bool:
        """Whether it has taken up every row that was written for it."""
        return self.track.rows >= sum(feed.counts[name] for name in self.reads)

    def result_rows(self) -> int:
        """Rows in the result files, by their footers: what was really written."""
        return sum(pq.read_metadata(file).num_rows for file in self.results.rglob("*.parquet"))
