"""Decides which segments to merge, so that few are live and none outlives its rows for long."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skewless.state.segment import Segment

# A window is cut into so many basic windows; a merged segment spans about one of them, so at most
# an eighth more than the window is kept.
BASIC_WINDOWS = 8
# So many segments of a level make one of the next: each row is rewritten once per level.
FANOUT = 8
# A basic window that is closed is merged also with fewer segments, but not for less than this: a
# probe of one more segment is cheaper than rewriting its rows.
WORTHWHILE = 4
# Per side and instance; past this, neighbours are merged whatever their span.
MAX_LIVE = 40
# Keeps a segment's string columns far below Arrow's 2 GiB of offsets, and a merge's memory small.
MAX_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Merge:
    """Segments of one side and instance to be rewritten as one, leaving expired rows behind."""

    side: str
    instance: int
    segments: tuple[Segment, ...]


def expired(segment: Segment, keep_from_us: Mapping[str, int | None]) -> bool:
    """Whether even the segment's newest row can match nothing any more."""
    bound = keep_from_us[segment.side]
    return bound is not None and segment.max_time_us < bound


def choose_merges(
    segments: Iterable[Segment], keep_from_us: Mapping[str, int | None], window_us: int | None
) -> list[Merge]:
    """At most one merge per side and instance: the work of a batch stays bounded.

    `window_us` is how long a row can live; None when rows live for ever.
    """
    groups: dict[tuple[str, int], list[Segment]] = defaultdict(list)
    for segment in segments:
        groups[segment.side, segment.instance].append(segment)
    basic_us = None if window_us is None else window_us // BASIC_WINDOWS
    merges = []
    for (side, instance), group in sorted(groups.items()):
        group.sort(key=lambda s: (s.first_batch, s.name))
        chosen = _choose(group, keep_from_us[side], basic_us)
        if chosen:
            merges.append(Merge(side, instance, tuple(chosen)))
    return merges


def _choose(
    group: Sequence[Segment], keep_from_us: int | None, basic_us: int | None
) -> Sequence[Segment]:
    husks = [s for s in group if _is_husk(s, keep_from_us, basic_us)]
    crowded = len(group) > MAX_LIVE
    # A crowd goes first: with a new husk in every batch it would never have its turn.
    if husks and not crowded:
        return husks[:1]
    run = _level_run(group, basic_us)
    if not run and crowded:
        run = _lightest_run(group)
    return run or husks[:1]


def _level_run(group: Sequence[Segment], basic_us: int | None) -> Sequence[Segment]:
    """Neighbours of one level that make a segment of the next."""
    for level in sorted({s.level for s in group}):
        for begin in range(len(group)):
            run = _longest_run(group, begin, level, basic_us)
            if len(run) == FANOUT:
                return run
            after = group[begin + len(run) : begin + len(run) + 1]
            # No later segment can join: levels only rise, and spans only grow.
            closed = after and (after[0].level > level or not _fits([*run, *after], basic_us))
            if closed and len(run) >= WORTHWHILE:
                return run
    return []


def _lightest_run(group: Sequence[Segment]) -> Sequence[Segment]:
    """The least rewriting for the segments saved, whatever their span."""
    runs = [group[begin : begin + FANOUT] for begin in range(len(group) - FANOUT + 1)]
    lightest = min(runs, key=lambda r: sum(s.bytes for s in r))
    return lightest if sum(s.bytes for s in lightest) <= MAX_BYTES else []


def _longest_run(
    group: Sequence[Segment], begin: int, level: int, basic_us: int | None
) -> Sequence[Segment]:
    """The neighbours of one level, from `begin` on, that make one segment together."""
    end = begin
    while end < len(group) and end - begin < FANOUT and group[end].level == level:
        if not _fits(group[begin : end + 1], basic_us):
            break
        end += 1
    return group[begin:end]


def _fits(run: Sequence[Segment], basic_us: int | None) -> bool:
    if sum(s.bytes for s in run) > MAX_BYTES:
        return False
    if basic_us is None:
        return True
    span = max(s.max_time_us for s in run) - min(s.min_time_us for s in run)
    widest = max(s.max_time_us - s.min_time_us for s in run)
    # Out-of-order batches overlap: merging them widens nothing, so the basic window is no limit.
    return span <= max(basic_us, widest + widest // 2)


def _is_husk(segment: Segment, keep_from_us: int | None, basic_us: int | None) -> bool:
    """A few rows far in the future keep a segment alive whose other rows are gone."""
    if keep_from_us is None or basic_us is None:
        return False
    stray = segment.max_time_us - segment.bulk_time_us > basic_us
    return stray and segment.bulk_time_us < keep_from_us
