"""Round robin: every instance gets every k-th row, whatever the rows cost."""

from dataclasses import dataclass

from skewless.planning.checks import check_count
from skewless.planning.decision import Decision, Memory
from skewless.planning.shuffle.dealing import Dealing
from skewless.planning.shuffle.policy import ShufflePolicy
from skewless.planning.shuffle.snapshot import WorkSnapshot


@dataclass(frozen=True)
class RoundRobin(ShufflePolicy):
    """Rows are dealt out in turn: what Storm's shuffle grouping and Spark's repartition do.

    >>> RoundRobin().start(cores=8).instances
    8
    """

    instances: int | None = None

    def __post_init__(self) -> None:
        check_count(self.instances)

    def plan(self, snapshot: WorkSnapshot, memory: Memory) -> Decision[Dealing]:
        return self.decided(snapshot, "rows are dealt out in turn, whatever they cost", {})

    def route(self, memory: Memory, instances: int) -> Dealing:
        return Dealing(instances)
