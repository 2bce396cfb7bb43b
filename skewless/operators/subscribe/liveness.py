"""Which stored subscriptions still hold: none that a later row with its id has replaced or ended.

Segments never change, so what one of them says of another is found once in a process.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from skewless.engine.columns import TIME
from skewless.kernels.ordering import IndexArray
from skewless.operators.subscribe.subscriptions import Mask, Subscriptions, ended_rows
from skewless.routing.cells import CellGrid
from skewless.state.segment import Segment, open_segment
from skewless.state.storage import Storage

_KEPT = 256


@dataclass
class _Known:
    """A segment that this process has opened, and which of its rows other segments replace."""

    subscriptions: Subscriptions
    replaced: dict[str, IndexArray] = field(default_factory=dict)  # by the name of the other


# The segments that this process has opened lately, of every state directory.
_opened: OrderedDict[tuple[str, str, int], _Known] = OrderedDict()


@dataclass(frozen=True)
class Liveness:
    """The stored subscriptions of an operator, as one task sees them."""

    storage: Storage
    grid: CellGrid
    id_column: str
    others: Sequence[Segment]  # all that may replace or end a subscription; none: nothing changes

    def opened(self, segment: Segment) -> tuple[Subscriptions, Mask | None]:
        """The rows of a segment, and which of them hold; None: all do."""
        known = self._known(segment)
        gone = [self._replaced(known, other) for other in self._later(segment)]
        ended = ended_rows(known.subscriptions.rows)
        if not ended.any() and not any(len(rows) for rows in gone):
            return known.subscriptions, None
        alive = ~ended
        for rows in gone:
            alive[rows] = False
        return known.subscriptions, alive

    def _later(self, segment: Segment) -> list[Segment]:
        """The segments that may have later rows with the same ids."""
        return [
            other
            for other in self.others
            if other.name != segment.name and other.last_batch > segment.first_batch
        ]

    def _replaced(self, known: _Known, segment: Segment) -> IndexArray:
        if segment.name not in known.replaced:
            other = self._known(segment).subscriptions
            identities, order = other.by_identity
            ids = other.rows.column(self.id_column).take(pa.array(order))
            row, place = known.subscriptions.known_as(identities, ids, self.id_column)
            newer = other.run.times[order[place]] > known.subscriptions.run.times[row]
            known.replaced[segment.name] = row[newer]
        return known.replaced[segment.name]

    def _known(self, segment: Segment) -> _Known:
        key = (self.storage.uri, segment.name, segment.checksum)
        if key not in _opened:
            run = open_segment(self.storage, segment, TIME)
            _opened[key] = _Known(Subscriptions(self.grid, run))
            while len(_opened) > _KEPT:
                _opened.popitem(last=False)
        _opened.move_to_end(key)
        return _opened[key]
