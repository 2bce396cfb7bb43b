"""SWARM's statistics of a tile: five numbers per row, and five per column (§4.2 of the paper)."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument
from skewless.load.corners import CornerCounts
from skewless.routing.tiles import Axis, Tile

Numbers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


def fade(before: Reals | None, points: Reals) -> Reals:
    """N after a round, per cell: half of what it was, and the points of the round.

    >>> fade(np.array([8.0, 2.0]), np.array([1.0, 0.0])).tolist()
    [5.0, 1.0]
    """
    return points.astype(np.float64) if before is None else before / 2 + points


@dataclass(frozen=True, eq=False)
class Collectors:
    """What has arrived since the last round, one entry per line: N', Q' and spanQ'.

    A point adds to one entry, however large the tile.

    >>> arrived = Collectors.empty(4).with_points(np.array([2, 2])).with_queries([1], [2])
    >>> arrived.points.tolist(), arrived.queries.tolist(), arrived.spans.tolist()
    ([0.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])
    """

    points: Reals  # N'
    queries: Reals  # Q': by the line in which they begin
    spans: Reals  # spanQ': reach into the line from the one before

    @staticmethod
    def empty(lines: int) -> "Collectors":
        return Collectors(np.zeros(lines), np.zeros(lines), np.zeros(lines))

    def with_points(self, places: npt.ArrayLike) -> "Collectors":
        """Points arrive in these lines, counted from the tile's first."""
        arrived = np.bincount(np.asarray(places, np.int64), minlength=len(self.points))
        return replace(self, points=self.points + arrived)

    def with_queries(self, first: npt.ArrayLike, last: npt.ArrayLike) -> "Collectors":
        """Queries arrive, cut to the tile: each begins in a line, and reaches into those after it
        up to its last."""
        lines = len(self.points)
        starts, ends = np.asarray(first, np.int64), np.asarray(last, np.int64)
        begin = np.bincount(starts, minlength=lines)
        # One step up behind the first line, one down behind the last: two updates per query.
        steps = np.bincount(starts + 1, minlength=lines + 2)
        steps = steps - np.bincount(ends + 1, minlength=lines + 2)
        spans = self.spans + np.cumsum(steps)[:lines]
        return replace(self, queries=self.queries + begin, spans=spans)


@dataclass(frozen=True)
class Counts:
    """N, Q and R of a part of a tile, or of many parts."""

    points: Reals
    queries: Reals
    received: Reals

    @property
    def cost(self) -> Reals:
        """The numerator of eq. 5: N · Q · R."""
        return self.points * self.queries * self.received


@dataclass(frozen=True, eq=False)
class Lines:
    """The rows, or the columns, of one tile at the end of a round.

    `points` (N), `queries` (Q) and `received` (R) are cumulative: they count all lines up to this
    one. `spans` (spanQ) are the queries that reach into a line from the one before, `new_spans`
    (preSpanQ') those of them that came in the last round.
    """

    points: Reals
    queries: Reals
    received: Reals
    spans: Reals
    new_spans: Reals

    @staticmethod
    def empty(lines: int) -> "Lines":
        return Lines(*(np.zeros(lines) for _ in range(5)))

    @staticmethod
    def of(
        tile: Tile,
        axis: Axis,
        faded: Reals,
        points: Reals,
        subscriptions: CornerCounts,
        arrived: CornerCounts,
    ) -> "Lines":
        """The same statistics from counts per cell and corners, exact for any tile at any time.

        So a tile that was moved, split or merged needs no history of its own.
        """
        side = subscriptions.side
        inside = np.s_[tile.top : tile.bottom, tile.left : tile.right]
        rows = axis == "rows"
        across = 1 if rows else 0
        old = faded.reshape(side, side)[inside].sum(axis=across).cumsum()
        new = points.reshape(side, side)[inside].sum(axis=across).cumsum()
        last_row, last_column = tile.bottom - 1, tile.right - 1

        def met(counts: CornerCounts) -> Numbers:
            if rows:
                ends = np.arange(tile.top, tile.bottom)
                return counts.meeting(tile.top, tile.left, ends, last_column)
            return counts.meeting(tile.top, tile.left, last_row, np.arange(tile.left, tile.right))

        def spans(counts: CornerCounts) -> Reals:
            if rows:
                at = np.arange(tile.top, tile.bottom)
                found = counts.crossing_rows(at, tile.left, last_column).astype(np.float64)
            else:
                at = np.arange(tile.left, tile.right)
                found = counts.crossing_columns(at, tile.top, last_row).astype(np.float64)
            found[0] = 0.0  # what reaches in from outside counts as beginning in the first line
            return found

        return Lines(
            points=old,
            queries=met(subscriptions).astype(np.float64),
            received=new + met(arrived),
            spans=spans(subscriptions),
            new_spans=spans(arrived),
        )

    @property
    def count(self) -> int:
        return len(self.points)

    def round(self, arrived: Collectors) -> "Lines":
        """Algorithm 2: fold the collectors in, in one pass. N is halved first, so that old points
        fade."""
        new_points = arrived.points.cumsum()
        new_queries = arrived.queries.cumsum()
        return Lines(
            points=self.points / 2 + new_points,
            queries=self.queries + new_queries,
            received=new_points + new_queries,
            spans=self.spans + arrived.spans,
            new_spans=arrived.spans.copy(),
        )

    @property
    def whole(self) -> Counts:
        """The counts of the tile: those of its last line."""
        return Counts(self.points[-1:], self.queries[-1:], self.received[-1:])

    def parts(self, at: npt.ArrayLike) -> tuple[Counts, Counts]:
        """The counts of the lines before a line and from it on, for one split or many (§4.2.3).

        A query that crosses the split counts in both parts.
        """
        split = np.asarray(at, np.int64)
        if split.size and not 0 < split.min() <= split.max() < self.count:
            raise bad_argument("at", at, f"lines from 1 to {self.count - 1}")
        first = Counts(self.points[split - 1], self.queries[split - 1], self.received[split - 1])
        second = Counts(
            self.points[-1] - first.points,
            self.queries[-1] - first.queries + self.spans[split],
            self.received[-1] - first.received + self.new_spans[split],
        )
        return first, second

    def split(self, at: int) -> tuple["Lines", "Lines"]:
        """The statistics of both parts along this axis."""
        before, after = np.s_[:at], np.s_[at:]
        first = self._each(before)
        rest = self._each(after)
        spans, new_spans = rest.spans.copy(), rest.new_spans.copy()
        spans[0] = new_spans[0] = 0.0
        second = Lines(
            points=rest.points - self.points[at - 1],
            queries=rest.queries - self.queries[at - 1] + self.spans[at],
            received=rest.received - self.received[at - 1] + self.new_spans[at],
            spans=spans,
            new_spans=new_spans,
        )
        return first, second

    def _each(self, lines: slice) -> "Lines":
        return Lines(
            self.points[lines],
            self.queries[lines],
            self.received[lines],
            self.spans[lines],
            self.new_spans[lines],
        )
