"""What a map's policy may know: the work that every instance did in a batch."""

from dataclasses import dataclass

from skewless.errors import bad_argument
from skewless.load.sketches import CostSketch


@dataclass(frozen=True)
class InstanceWork:
    """What one instance did in one batch."""

    instance: int
    rows: int
    busy_ms: float  # spent in the user's function
    estimated_ms: float  # estimated before the batch
    sketch: CostSketch | None  # of this batch only; None: tasks measure nothing


@dataclass(frozen=True)
class WorkSnapshot:
    """The measured work of a map in a batch; one entry per instance, in order."""

    work: tuple[InstanceWork, ...]

    def __post_init__(self) -> None:
        found = [w.instance for w in self.work]
        if not found or found != list(range(len(found))):
            raise bad_argument("work", found, "the work of every instance, in order")

    @property
    def instances(self) -> int:
        return len(self.work)

    @property
    def rows(self) -> int:
        """The rows of the batch."""
        return sum(w.rows for w in self.work)
