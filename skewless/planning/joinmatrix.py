"""The baseline Join-Matrix: rows cross a grid of instances, whatever their keys."""

from dataclasses import dataclass

from skewless.load.imbalance import imbalance
from skewless.planning.checks import check_count
from skewless.planning.decision import Decision, Memory
from skewless.planning.hash import Hash
from skewless.planning.plan import stay
from skewless.planning.policy import RoutingPolicy
from skewless.planning.snapshot import Snapshot
from skewless.routing.grid import GridRoute
from skewless.routing.partitions import PartitionTable
from skewless.routing.route import Route


@dataclass(frozen=True)
class JoinMatrix(RoutingPolicy):
    """A left row goes to a random row of the grid, a right row to a random column.

    >>> JoinMatrix(instances=12).start(cores=2).shape
    (3, 4)
    """

    instances: int | None = None

    def __post_init__(self) -> None:
        check_count(self.instances)

    def table(self, cores: int) -> PartitionTable:
        return Hash(self.instances).table(cores)

    def start(self, cores: int) -> GridRoute:
        return GridRoute(self.table(cores))

    def plan(self, snapshot: Snapshot, memory: Memory) -> Decision[Route]:
        loads = snapshot.by_instance(snapshot.load)
        plan = stay(snapshot, "the grid is even by chance: nothing moves", imbalance(loads))
        return Decision(None, plan.reason, plan=plan)
