"""Takes in rows of the stream or of the table: tells those that can match, and sorts them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.badrows import bad_row, times_and_bad
from skewless.engine.columns import HASH, ITEMS, TIME
from skewless.engine.dropped import Dropped
from skewless.engine.intake import Taken
from skewless.kernels.conditions import SetCondition
from skewless.kernels.hashing import xxhash64
from skewless.kernels.ordering import HashArray, TimeArray, order_by_hash_and_time
from skewless.kernels.runs import SortedRun, sort_run
from skewless.operators.join.postings import SETS
from skewless.operators.lookup.terms import Terms

Mask = npt.NDArray[np.bool_]
_TIME_TYPE = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Examined:
    """Rows of a side, and what can be found of them."""

    rows: pa.RecordBatch
    hashes: HashArray
    times: TimeArray
    usable: Mask  # the others match nothing
    flawed: Mask | None  # what they are compared by is no such thing; None: none is


def examined(terms: Terms, side: str, rows: pa.RecordBatch) -> Examined:
    """A row without a key, or without a time where that is compared, matches nothing: as in SQL."""
    postings = terms.postings
    flawed = None
    needed: tuple[str, ...] = ()
    if postings is not None:
        rows, flawed = postings.prepared(rows, side)
        needed = postings.needed(side)
    usable = np.ones(rows.num_rows, np.bool_)
    times = np.zeros(rows.num_rows, np.int64)
    if terms.timed:
        times, untimed = times_and_bad(rows.column(TIME))
        if untimed is not None:
            usable &= ~untimed
    for name in (*terms.layout.key_columns, *needed):
        column = rows.column(name)
        if column.null_count:
            usable &= ~column.is_null().to_numpy(zero_copy_only=False)
    if flawed is not None:
        usable &= ~flawed
    return Examined(rows, _hashes(terms, rows), times, usable, flawed)


def stored_run(terms: Terms, of: Examined) -> SortedRun:
    """The rows of the table that can match, as they are stored."""
    rows = of.rows
    if not terms.timed:
        # Every segment has times, by which its rows are sorted within a key.
        rows = rows.append_column(TIME, pa.array(of.times, _TIME_TYPE))
    columns = list(terms.layout.stored_columns(terms.table))
    postings = terms.postings
    if postings is not None:
        return postings.runs(0, terms.table, rows, columns, of.times, of.hashes, of.usable)[0]
    return _sorted(terms, of, rows.select(columns))


class StreamIntake:
    """Counts over all the rows of one instance's batch."""

    def __init__(self, terms: Terms, dropped: Dropped, *, drop_bad_rows: bool) -> None:
        self._terms = terms
        self._dropped = dropped
        self._drop_bad_rows = drop_bad_rows
        self._rows = 0
        self._unmatchable = 0
        self._bad_rows = 0

    def taken(self) -> Taken:
        """What has come in so far."""
        side = self._terms.stream
        return Taken(
            rows={side: self._rows},
            replicas={side: 0},
            late={side: 0},
            null_keys={side: self._unmatchable},
            bad_rows={side: self._bad_rows},
            max_time_us={},
        )

    def needles(self, rows: pa.RecordBatch) -> tuple[SortedRun, pa.RecordBatch, HashArray]:
        """Rows to look up, those that match nothing, and the sorted hashes by which they came."""
        terms = self._terms
        of = examined(terms, terms.stream, rows)
        self._rows += of.rows.num_rows
        others = ~of.usable
        if of.flawed is not None:
            self._refuse(of.rows, of.flawed)
            others &= ~of.flawed
        self._unmatchable += int(others.sum())
        names = of.rows.schema.names
        columns = [c for c in terms.layout.stored_columns(terms.stream) if c in names]
        rest = of.rows.select(columns).filter(pa.array(others))
        if isinstance(terms.condition, SetCondition):
            run = _indexed(terms.condition, of, columns)
            return run, rest, np.sort(of.hashes[of.usable])
        postings = terms.postings
        if postings is not None:
            run = postings.runs(0, terms.stream, of.rows, columns, of.times, of.hashes, of.usable)[
                0
            ]
        else:
            run = _sorted(terms, of, of.rows.select(columns))
        return run, rest, run.hashes

    def _refuse(self, rows: pa.RecordBatch, bad: Mask) -> None:
        terms = self._terms
        assert terms.postings is not None, "only what it is compared by can be flawed"
        why = terms.postings.flaw
        shown = terms.layout.as_input(terms.stream, rows)
        if bad.any() and not self._drop_bad_rows:
            raise bad_row(f"the {terms.stream} input", why, shown, bad)
        self._bad_rows += self._dropped.take(terms.stream, shown, bad, f"bad row: {why}")


def _indexed(condition: SetCondition, of: Examined, columns: list[str]) -> SortedRun:
    """The postings of the usable rows; those that have none are kept, for they match nothing."""
    rows = of.rows.filter(pa.array(of.usable))
    row, hashes = SETS.of(rows.column(ITEMS)).postings(condition.indexed_for)
    times = of.times[of.usable][row]
    order = order_by_hash_and_time(hashes, times)
    at = row[order].astype(np.int32)
    return SortedRun(hashes[order], times[order], rows.select(columns), False, at)


def _sorted(terms: Terms, of: Examined, rows: pa.RecordBatch) -> SortedRun:
    layout = terms.layout
    usable = None if of.usable.all() else np.flatnonzero(of.usable)
    return sort_run(of.hashes, of.times, rows, layout.key_columns, usable, layout.hash_is_key)


def _hashes(terms: Terms, rows: pa.RecordBatch) -> HashArray:
    if not terms.layout.hash_from_key:
        hashes: HashArray = rows.column(HASH).to_numpy().view(np.uint64)
        return hashes
    (key,) = (rows.column(k) for k in terms.layout.key_columns)
    # Rows without a key are not usable: any number will do for them.
    return xxhash64((key.fill_null(0) if key.null_count else key).to_numpy())
