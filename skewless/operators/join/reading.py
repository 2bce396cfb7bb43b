"""Opens the stored rows that some needles may meet."""

from collections.abc import Iterable, Iterator

from skewless.engine.columns import TIME
from skewless.kernels.runs import SortedRun
from skewless.operators.join.bounds import Bounds
from skewless.operators.join.pairing import OTHER
from skewless.state.segment import Segment, open_segment
from skewless.state.storage import Storage


def opened(
    storage: Storage, segments: Iterable[Segment], side: str, needles: SortedRun, bounds: Bounds
) -> Iterator[SortedRun]:
    """Those of the segments of a side that needles of the other side may meet."""
    lower, upper = bounds.around(OTHER[side])
    earliest = int(needles.times.min()) + lower
    latest = int(needles.times.max()) + upper
    for segment in tuple(segments):
        if segment.side != side or segment.max_time_us < earliest:
            continue
        if segment.min_time_us <= latest:
            yield open_segment(storage, segment, TIME)
