"""Decides, within a task, which part of its probes is made when there is no time for all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.kernels.conditions import Condition
from skewless.kernels.equijoin import Probe
from skewless.kernels.intervals import cut_ranges, spread_of_ranges
from skewless.kernels.ordering import HashArray, IndexArray, TimeArray
from skewless.kernels.runs import SortedRun
from skewless.operators.join.bounds import LEFT, SIDES
from skewless.operators.join.pairing import OTHER
from skewless.shedding.account import Account
from skewless.shedding.draws import uniform
from skewless.shedding.estimate import Missed
from skewless.shedding.plan import ProbePlan, Selection

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Independent uses of chance.
_FULLY, _IN_PART, _STORED = 0, 1, 2
# So many needles tell how the comparisons of a task are spread over the window.
_ENOUGH = 4_096
# So many pairs tell what the cells give, where it costs time and nothing is shed.
_ENOUGH_PAIRS = 20_000
# A chosen part may cost a little more than it should before it is thinned out.
_SLACK = 1.02
_VALUES_SHOWN = 32
_MOST_WORTH = 1e100


@dataclass(frozen=True)
class Meeting:
    """Rows of one side, and those of the other that they may match."""

    side: str  # of the needles
    found: Probe


# A meeting, the part of its probe that is made, and whether it is of rows that are probed in full;
# None: of all rows.
_Chosen = tuple[Meeting, Probe, bool | None]


class Shedder:
    """The probing of one instance's rows of one batch, and the account of it."""

    def __init__(
        self,
        plan: ProbePlan,
        values: Mapping[str, str | None],
        condition: Condition | None = None,
    ) -> None:
        self.plan = plan
        self._values = values  # per side: the column that says what a row is worth
        self._condition = condition  # None: every comparison is a match
        self._instance = 0
        self._rows = 0
        self._dropped = dict.fromkeys(SIDES, 0)
        self._keep = 1.0
        self._spent_ms = 0.0
        self._budget_ms: float | None = None
        self._offered = 0
        self._offered_ms = self._chosen_ms = 0.0
        self._windows = {"left": 0.0, "right": 0.0}  # fractions, weighted by what was offered
        self._cells = np.zeros((3, len(plan.order)))  # comparisons, matches, values
        self._worth: list[float] = []
        self._missed = Missed()
        self.compare_ms = self.match_ms = 0.0
        self._is_last = True

    def arrive(self, instance: int, rows: int, *, is_last: bool) -> None:
        """A piece of the batch with so many rows."""
        self._instance = instance
        self._is_last = is_last
        self._rows += rows
        self._keep = self.plan.keep(instance, self._rows)
        self._budget_ms = self.plan.budget_ms(instance, self._rows, self._keep)

    def stored(
        self, side: str, rows: pa.RecordBatch, hashes: HashArray, times: TimeArray, usable: Mask
    ) -> Mask:
        """Those of the usable rows that are stored: the most valuable, as there is time for."""
        if self._keep >= 1.0:
            return usable
        at = np.flatnonzero(usable)
        order = uniform(hashes[at], times[at], self.plan.batch, _STORED)
        worth = self.worth_of(side, rows)
        if worth is None:
            dropped = at[order >= self._keep]
        else:
            # By value, and by chance among equals.
            least = np.lexsort((order, worth[at]))
            dropped = at[least[: round((1 - self._keep) * len(at))]]
        kept = usable.copy()
        kept[dropped] = False
        return kept

    def drop(self, side: str, rows: int) -> None:
        """So many rows of a side are not even stored."""
        self._dropped[side] += rows

    def worth_of(self, side: str, rows: pa.RecordBatch) -> Floats | None:
        column = self._values.get(side)
        if column is None:
            return None
        worth = rows.column(column).cast(pa.float64(), safe=False).fill_null(0.0).to_numpy()
        # Sums of them must stay finite.
        return np.clip(np.nan_to_num(worth, nan=0.0, posinf=_MOST_WORTH), 0.0, _MOST_WORTH)

    def parts(self, meetings: Sequence[Meeting]) -> Iterator["Part"]:
        """What is to be compared, as probes of some of the needles with some of the window."""
        offered = sum(m.found.total for m in meetings)
        if not offered:
            return
        needles: dict[int, _Needles] = {}
        for meeting in meetings:
            if id(meeting.found.needles) not in needles:
                needles[id(meeting.found.needles)] = self._needles(meeting)
        counts = self._spread(meetings, needles, offered)
        selection = self.plan.select(self._left_ms, counts)
        full_ms = float(counts @ self.plan.cell_ms)
        chosen: Iterator[_Chosen] = ((m, m.found, None) for m in meetings)
        chosen_ms, rates = full_ms, np.ones(len(counts))
        if not selection.is_everything:
            budget_ms = self._left_ms or 0.0
            cut = _Cut(self.plan, selection, counts, needles, meetings, budget_ms)
            chosen, chosen_ms, rates = cut.parts(), cut.chosen_ms, cut.rates
        self._offered += offered
        self._offered_ms += full_ms
        self._chosen_ms += chosen_ms
        self._spent_ms += chosen_ms
        self._count_windows(counts, rates, selection.chance, offered)
        guess = _guess(self.plan, counts, rates)
        # Where all is probed, enough of it tells what the cells give.
        every = max(round(1 / self.plan.sample), offered // _ENOUGH_PAIRS)
        made = 0
        for meeting, found, is_full in chosen:
            drawn = needles[id(meeting.found.needles)]
            made += found.total
            yield Part(self, meeting.side, found, drawn, rates, guess, every, is_full)
        if self._condition is None:
            self._missed += Missed(float(offered - made))
        elif not selection.is_everything:
            lost = np.concatenate([n.lost(selection.chance) for n in needles.values()], axis=1)
            guessed = guess * (offered - made)
            self._missed += Missed.of(lost[0], lost[1:], selection.chance, guessed)

    @property
    def _left_ms(self) -> float | None:
        if self._budget_ms is None:
            return None
        left = max(0.0, self._budget_ms - self._spent_ms)
        return left if self._is_last else left / 2  # rows that come later are to probe, too

    def _needles(self, meeting: Meeting) -> "_Needles":
        run = meeting.found.needles
        worth = self.worth_of(meeting.side, run.rows)
        if worth is not None and len(self._worth) < _VALUES_SHOWN:
            shown = worth[:: max(1, len(worth) // _VALUES_SHOWN)]
            self._worth += shown[: _VALUES_SHOWN - len(self._worth)].tolist()
        condition = None if self._condition is None else self._condition.seen_from(meeting.side)
        return _Needles(run, worth, self.plan, self._instance, condition)

    def _spread(
        self, meetings: Sequence[Meeting], needles: Mapping[int, "_Needles"], offered: int
    ) -> Floats:
        """How many comparisons there are to be made in each cell, from some of the needles."""
        plan = self.plan
        counts = np.zeros((len(plan.order) // len(plan.windows), len(plan.windows)), np.int64)
        left_ms = self._left_ms
        if left_ms is None or offered * float(plan.cell_ms.max()) <= left_ms:
            # There is time for all, wherever it is.
            return np.full(counts.size, offered / counts.size)
        hits = [np.flatnonzero(m.found.count) for m in meetings]
        step = max(1, sum(map(len, hits)) // _ENOUGH)
        for meeting, hit in zip(meetings, hits, strict=True):
            some, found = hit[plan.batch % step :: step], meeting.found
            here = np.zeros_like(counts)
            spread_of_ranges(
                found.needles.times[some],
                found.stored.times,
                found.start[some],
                found.count[some],
                _offsets(plan, meeting.side),
                needles[id(found.needles)].line[some],
                here,
            )
            counts += here if meeting.side == LEFT else here[:, ::-1]
        seen = counts.ravel().astype(np.float64)
        total = float(seen.sum())
        return seen * (offered / total) if total else np.full(seen.size, offered / seen.size)

    def _count_windows(self, counts: Floats, rates: Floats, chance: float, offered: int) -> None:
        """Which part of either side's window was probed."""
        windows = self.plan.windows
        probed = (chance + (1 - chance) * rates).reshape(-1, len(windows))
        weight = counts.reshape(-1, len(windows)) + 1e-9
        each = (probed * weight).sum(axis=0) / weight.sum(axis=0)
        for side, inside in (("left", windows.of_left), ("right", ~windows.of_left)):
            lengths = windows.lengths * inside
            part = float(each @ lengths / lengths.sum()) if lengths.any() else 1.0
            self._windows[side] += offered * part

    def account(self, comparisons: int, matches: int, wall_ms: float) -> Account:
        """What was done, once all of it is."""
        offered = self._offered
        windows = {s: w / offered if offered else 1.0 for s, w in self._windows.items()}
        return Account(
            rows=self._rows,
            dropped=self._dropped,
            keep=self._keep,
            offered=offered,
            comparisons=comparisons,
            matches=matches,
            rest_ms=max(0.0, wall_ms - self.compare_ms - self.match_ms),
            compare_ms=self.compare_ms,
            match_ms=self.match_ms,
            fraction=self._chosen_ms / self._offered_ms if self._offered_ms else 1.0,
            left=windows["left"],
            right=windows["right"],
            cell_comparisons=self._cells[0].tolist(),
            cell_matches=self._cells[1].tolist(),
            cell_values=self._cells[2].tolist(),
            values=self._worth,
            missed=self._missed,
        )

    @property
    def estimates(self) -> bool:
        """Whether what is missed has to be estimated from rows probed in full."""
        return self._condition is not None

    def learn(self, kind: int, cells: IndexArray, weights: Floats | None = None) -> None:
        self._cells[kind] += np.bincount(cells, weights, self._cells.shape[1])


class _Needles:
    """The rows of a run as chance and their value see them."""

    def __init__(
        self,
        run: SortedRun,
        worth: Floats | None,
        plan: ProbePlan,
        instance: int,
        condition: Condition | None,
    ) -> None:
        self._run = run
        self._condition = condition
        # A row may be needle on several instances, each of which draws for itself: their errors
        # are independent.
        self._instance = instance
        # A row is probed or not as a whole, under whichever of its items it is found.
        self._rows_of = run.rows_of(np.arange(len(run)))
        self._batch = plan.batch
        self.worth = None if worth is None else worth[self._rows_of]
        self.line = np.zeros(len(run), np.int64)
        if self.worth is not None and plan.value_edges:
            self.line = np.searchsorted(np.array(plan.value_edges), self.worth, side="right")
        self._lost: npt.NDArray[np.float64] | None = None  # by row

    @cached_property
    def _seeds(self) -> tuple[HashArray, TimeArray]:
        """What draws are made from, by row."""
        run = self._run
        hashes = None if self._condition is None else self._condition.seeds(run.rows)
        if hashes is None:
            return run.hashes, run.times
        times = np.zeros(len(hashes), np.int64)
        times[self._rows_of] = run.times
        return hashes, times

    @cached_property
    def _drawn(self) -> Floats:
        return uniform(*self._seeds, self._batch, _FULLY, self._instance)

    @cached_property
    def fully(self) -> Floats:
        """Below a chance, every needle's row is probed in full."""
        return self._drawn[self._rows_of]

    @cached_property
    def in_part(self) -> Floats:
        """Below a chance, every needle's row probes what some rows do."""
        drawn = uniform(*self._seeds, self._batch, _IN_PART, self._instance)
        return drawn[self._rows_of]

    def lose(self, needle: IndexArray, rates: Floats, each: float) -> None:
        """What needles that are probed in full find, and the chance of finding it otherwise."""
        if self._lost is None:
            self._lost = np.zeros((3, len(self._drawn)))
        row = self._run.rows_of(needle)
        whole, part = rates == 0.0, (rates > 0.0) & (rates < 1.0)
        np.add.at(self._lost[0], row[whole], each)
        np.add.at(self._lost[1], row[part], each * (1.0 - rates[part]))
        np.add.at(self._lost[2], row[part], each * rates[part])

    def lost(self, chance: float) -> Floats:
        """What each row that was probed in full would else have missed, as `Missed.of` takes it."""
        if self._lost is None:
            return np.zeros((3, 0))
        probed = np.flatnonzero(self._drawn < chance)
        # Rows of the same hash and time share their draw: they are one in this.
        drawn, unit = np.unique(self._drawn[probed], return_inverse=True)
        lost: Floats = np.zeros((3, len(drawn)))
        for of_unit, of_row in zip(lost, self._lost, strict=True):
            np.add.at(of_unit, unit, of_row[probed])
        return lost


@dataclass(frozen=True)
class Part:
    """A probe to be made; it watches what comes of it."""

    shedder: Shedder
    side: str
    found: Probe
    needles: _Needles
    rates: Floats  # per cell: the chance that a row probes it
    guess: float  # matches of a comparison that is not made
    every: int  # where all is probed: from each so-manieth needle is learned
    is_full: bool | None  # whether these are such rows; None: there are both

    def compared(self, needle: IndexArray, stored: IndexArray) -> None:
        """These pairs were looked at."""
        seen = self._learning(needle)
        if seen is None:
            return
        cells = self._cells(needle[seen], stored[seen])
        self.shedder.learn(0, cells)
        if self.is_full and self.shedder.estimates:
            self.needles.lose(needle[seen], self.rates[cells], -self.guess)

    def matched(self, needle: IndexArray, stored: IndexArray) -> None:
        """These pairs match."""
        seen = self._learning(needle)
        if seen is None:
            return
        needle, stored = needle[seen], stored[seen]
        cells = self._cells(needle, stored)
        self.shedder.learn(1, cells)
        self.shedder.learn(2, cells, self._worth(needle, stored))
        if self.is_full and self.shedder.estimates:
            self.needles.lose(needle, self.rates[cells], 1.0)

    def _learning(self, needle: IndexArray) -> Mask | slice | None:
        """Those of the pairs that are of rows probed in full, or enough of them where all are."""
        if self.is_full is not None:
            return slice(None) if self.is_full else None
        chosen = (needle + self.shedder.plan.batch) % self.every == 0
        return chosen if chosen.any() else None

    def _cells(self, needle: IndexArray, stored: IndexArray) -> IndexArray:
        found, windows = self.found, self.shedder.plan.windows
        apart = found.stored.times[stored] - found.needles.times[needle]
        window = windows.of(apart if self.side == LEFT else -apart)
        return self.needles.line[needle] * len(windows) + window

    @cached_property
    def _worth_of_stored(self) -> Floats | None:
        return self.shedder.worth_of(OTHER[self.side], self.found.stored.rows)

    def _worth(self, needle: IndexArray, stored: IndexArray) -> Floats | None:
        theirs = self._worth_of_stored
        if self.needles.worth is None and theirs is None:
            return None
        worth = np.zeros(len(needle))
        if self.needles.worth is not None:
            worth += self.needles.worth[needle]
        if theirs is not None:
            worth += theirs[self.found.stored.rows_of(stored)]
        return worth


@dataclass(frozen=True)
class _Piece:
    """Some needles of a meeting, and the range of stored rows that each of them is to probe."""

    meeting: Meeting
    needle: IndexArray
    start: IndexArray
    count: IndexArray

    @property
    def total(self) -> int:
        return int(self.count.sum())

    def among(self, chosen: Mask) -> "_Piece":
        """The same of some of the needles."""
        return _Piece(self.meeting, self.needle[chosen], self.start[chosen], self.count[chosen])

    def probe(self) -> Probe:
        found = self.meeting.found
        start, count = np.zeros_like(found.start), np.zeros_like(found.count)
        start[self.needle], count[self.needle] = self.start, self.count
        return replace(found, start=start, count=count, total=self.total)


class _Cut:
    """The probes of a task, cut to what was selected and fits the budget.

    Cells were selected by an estimate of what they cost; what the selected ones cost in truth says
    how many rows also probe the marginal one, or that not all may probe the others.
    """

    def __init__(
        self,
        plan: ProbePlan,
        selection: Selection,
        counts: Floats,
        needles: Mapping[int, "_Needles"],
        meetings: Sequence[Meeting],
        budget_ms: float,
    ) -> None:
        self._plan = plan
        self._counts = counts
        self._needles = needles
        self.rates = selection.kept.astype(np.float64)
        marginal_cell = np.zeros(len(counts), np.bool_)
        if selection.marginal is not None:
            marginal_cell[selection.marginal] = True
        self._full: list[_Piece] = []
        kept: list[_Piece] = []
        marginal: list[_Piece] = []
        for meeting in meetings:
            found = meeting.found
            hit = np.flatnonzero(found.count)
            whole = _Piece(meeting, hit, found.start[hit], found.count[hit])
            is_full = needles[id(found.needles)].fully[hit] < selection.chance
            self._full.append(whole.among(is_full))
            others = whole.among(~is_full)
            for cells, pieces in ((selection.kept, kept), (marginal_cell, marginal)):
                for stretch in _stretches(plan, cells, meeting.side):
                    pieces.append(self._narrowed(others, *stretch))
        full_ms = self._cost(self._full, np.ones(len(counts), np.bool_))
        kept_ms = self._cost(kept, selection.kept)
        if full_ms + kept_ms > _SLACK * budget_ms:
            kept, part = self._thinned(kept, max(0.0, budget_ms - full_ms) / (kept_ms or 1.0))
            marginal = []
            self.rates *= part
        else:
            more_ms = self._cost(marginal, marginal_cell)
            left_ms = max(0.0, budget_ms - full_ms - kept_ms)
            marginal, part = self._thinned(marginal, left_ms / more_ms if more_ms else 1.0)
            self.rates[marginal_cell] = part
        self._some = [*kept, *marginal]
        self.chosen_ms = full_ms + self._cost(kept, selection.kept)
        self.chosen_ms += self._cost(marginal, marginal_cell)

    def parts(self) -> Iterator[_Chosen]:
        """(meeting, probe, whether of rows probed in full)."""
        for is_full, pieces in ((True, self._full), (False, self._some)):
            for piece in pieces:
                if len(piece.needle):
                    yield piece.meeting, piece.probe(), is_full

    def _narrowed(self, piece: _Piece, line: int, lower_us: int, upper_us: int) -> _Piece:
        """The needles of a class, with what they find so far apart in time."""
        found = piece.meeting.found
        mine = piece.among(self._needles[id(found.needles)].line[piece.needle] == line)
        start, count, _ = cut_ranges(
            found.needles.times[mine.needle],
            found.stored.times,
            mine.start,
            mine.count,
            lower_us,
            upper_us,
        )
        return _Piece(piece.meeting, mine.needle, start, count).among(count > 0)

    def _thinned(self, pieces: list[_Piece], part: float) -> tuple[list[_Piece], float]:
        """About this part of the comparisons, by rows; and which part that has become."""
        if part >= 1.0 or not pieces:
            return pieces, 1.0
        draws = [self._needles[id(p.meeting.found.needles)].in_part[p.needle] for p in pieces]
        below = _bound(np.concatenate(draws), np.concatenate([p.count for p in pieces]), part)
        some = [piece.among(drawn < below) for piece, drawn in zip(pieces, draws, strict=True)]
        total = sum(piece.total for piece in pieces)
        return some, sum(piece.total for piece in some) / total if total else 1.0

    def _cost(self, pieces: Sequence[_Piece], cells: Mask) -> float:
        """What it costs to probe these cells."""
        comparisons = sum(piece.total for piece in pieces)
        weights = np.where(cells, self._counts, 0.0)
        total = float(weights.sum())
        mean = float(weights @ self._plan.cell_ms) / total if total else self._plan.costs.comparison
        return comparisons * mean


def _guess(plan: ProbePlan, counts: Floats, rates: Floats) -> float:
    """How many matches a comparison that is not made would give, by what was learned before."""
    left = counts * (1 - rates)
    total = float(left.sum())
    return float(left @ np.array(plan.match_rates)) / total if total else 0.0


def _bound(draws: Floats, counts: IndexArray, part: float) -> float:
    """The draw below which rows have nearest to this part of all the comparisons.

    Rows that share their draw are chosen together, so it may be a little more or less.
    """
    drawn, unit = np.unique(draws, return_inverse=True)
    if not len(drawn):
        return 1.0
    upto = np.concatenate([[0.0], np.cumsum(np.bincount(unit, counts))])
    fitting = int(np.abs(upto - part * upto[-1]).argmin())
    return float(drawn[fitting]) if fitting < len(drawn) else 1.0


def _offsets(plan: ProbePlan, side: str) -> TimeArray:
    """The edges of the basic windows as `stored.time − needle.time`, rising."""
    edges = plan.windows.edges
    return edges if side == LEFT else (1 - edges)[::-1].copy()


def _stretches(plan: ProbePlan, cells: Mask, side: str) -> Iterator[tuple[int, int, int]]:
    """(class, lower, upper) of `stored.time − needle.time`; neighbouring cells are one stretch."""
    edges = plan.windows.edges_us
    for line, chosen in enumerate(cells.reshape(-1, len(plan.windows))):
        bounds = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]])))
        for begin, end in bounds.reshape(-1, 2).tolist():
            lower, upper = edges[begin], edges[end] - 1
            yield (line, lower, upper) if side == LEFT else (line, -upper, -lower)
