"""Opens stored subscriptions, and remembers what was computed from a segment: it never changes."""

from collections import OrderedDict

from skewless.engine.columns import TIME
from skewless.operators.subscribe.subscriptions import Subscriptions
from skewless.routing.cells import CellGrid
from skewless.state.segment import Segment, open_segment
from skewless.state.storage import Storage

# The order of ids takes 16 bytes for every row of a segment that this process has opened lately.
_MOST_ROWS = 16_000_000
_known: OrderedDict[tuple[str, str, int], Subscriptions] = OrderedDict()


def open_subscriptions(storage: Storage, grid: CellGrid, segment: Segment) -> Subscriptions:
    """The rows of a segment, mapped into memory where it is local."""
    key = (storage.uri, segment.name, segment.checksum)
    if key not in _known:
        _known[key] = Subscriptions(grid, open_segment(storage, segment, TIME))
        while len(_known) > 1 and sum(map(len, _known.values())) > _MOST_ROWS:
            _known.popitem(last=False)
    _known.move_to_end(key)
    return _known[key]
