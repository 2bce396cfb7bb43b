"""What a lookup asks for: the same for the tasks that store the table and those that read it."""

from dataclasses import dataclass, field

from skewless.engine.chunks import Limits
from skewless.kernels.conditions import SetCondition
from skewless.kernels.predicate import Predicate
from skewless.operators.join.bounds import LEFT, Bounds
from skewless.operators.join.cells import CellPostings
from skewless.operators.join.choosing import Chooser
from skewless.operators.join.how import How
from skewless.operators.join.layout import Layout
from skewless.operators.join.pairing import OTHER
from skewless.operators.join.postings import Postings, SetPostings
from skewless.operators.join.task import Matching
from skewless.planning.hash import Hash

# A row of the stream is looked up as a whole on one instance, and so is a row of the table stored:
# all postings of a row are at home where it is.
_HERE = Hash(1).start(1)


@dataclass(frozen=True)
class Terms:
    """When a row of the stream and a row of the table match, and what is given then."""

    layout: Layout
    how: How
    stream: str = LEFT  # the side that streams
    bounds: Bounds = field(default_factory=lambda: Bounds(None, None))
    timed: bool = False  # rows have a time, which the bounds are about
    condition: Matching | None = None  # None: equal keys are all
    where: Predicate | None = None  # what pairs have to fulfil, too
    chooser: Chooser | None = None  # None: all that match are given
    limits: Limits = field(default_factory=Limits)

    @property
    def table(self) -> str:
        """The side that is stored."""
        return OTHER[self.stream]

    @property
    def is_proven(self) -> bool:
        """Whether rows of equal hash need no look at their keys; a condition compares them."""
        return self.layout.hash_is_key or self.condition is not None

    @property
    def by_sets(self) -> bool:
        return isinstance(self.condition, SetCondition)

    @property
    def postings(self) -> Postings | None:
        """How rows are found that have several hashes; None: each has one."""
        if self.condition is None:
            return None
        if isinstance(self.condition, SetCondition):
            return SetPostings(self.condition, _HERE)
        return CellPostings(self.condition, _HERE, keeps_row_hash=self.chooser is not None)
