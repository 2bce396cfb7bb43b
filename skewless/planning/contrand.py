"""The baseline BiStream-ContRand: a key's rows are scattered over a group, and probe all of it."""

from dataclasses import dataclass

from skewless.load.imbalance import imbalance
from skewless.planning.checks import check_count, check_whole
from skewless.planning.decision import Decision, Memory
from skewless.planning.hash import Hash
from skewless.planning.plan import stay
from skewless.planning.policy import RoutingPolicy
from skewless.planning.snapshot import Snapshot
from skewless.routing.groups import GroupRoute
from skewless.routing.partitions import MAX_PARTITIONS, PartitionTable
from skewless.routing.route import Route


@dataclass(frozen=True)
class ContRand(RoutingPolicy):
    """Hash to a group of instances, store on a random member, probe every member.

    >>> ContRand(instances=4, group=2).start(cores=2).group
    2
    """

    instances: int | None = None
    group: int = 2

    def __post_init__(self) -> None:
        check_count(self.instances)
        # The default of 2 is also allowed with a single instance: its group has one member.
        check_whole("group", self.group, 1, max(2, self.instances or MAX_PARTITIONS))

    def table(self, cores: int) -> PartitionTable:
        return Hash(self.instances).table(cores)

    def start(self, cores: int) -> GroupRoute:
        return GroupRoute(self.table(cores), self.group)

    def plan(self, snapshot: Snapshot, memory: Memory) -> Decision[Route]:
        loads = snapshot.by_instance(snapshot.load)
        plan = stay(snapshot, "groups are fixed: nothing moves", imbalance(loads))
        return Decision(None, plan.reason, plan=plan)
