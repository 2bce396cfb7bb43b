"""What the tasks of one operator have around them in one try at one batch."""

from dataclasses import dataclass, field

from skewless.state.faults import Faults
from skewless.state.manifest import Segments
from skewless.state.naming import BatchNames
from skewless.state.storage import Storage


@dataclass(frozen=True)
class Setting:
    """Where tasks read and write, and what becomes of rows that they drop; picklable."""

    storage: Storage
    names: BatchNames
    segments: Segments  # the stored rows that the batch begins with
    drop_bad_rows: bool = False
    keep_dropped: bool = False  # whole, for dead letters; else a few are shown
    faults: Faults = field(default_factory=Faults)
