"""What a policy for stateless operators offers: measured work in, the next dealing out."""

from abc import abstractmethod

from skewless.load.sketches import CostSketch
from skewless.planning.checks import counted
from skewless.planning.decision import Decision, Memory
from skewless.planning.policy import Policy
from skewless.planning.shuffle.dealing import Dealing
from skewless.planning.shuffle.snapshot import WorkSnapshot


class ShufflePolicy(Policy[WorkSnapshot, Dealing]):
    """A policy for maps: measured costs become the next dealing, which is a map's route.

    A commit stores only the policy's memory. `route` rebuilds the dealing from it.
    """

    instances: int | None = None

    @abstractmethod
    def route(self, memory: Memory, instances: int) -> Dealing:
        """The dealing of the next batch, rebuilt from the memory; {} is a new query's memory.

        After a restart, `instances` may differ from the number that the memory was made with.
        """

    def start(self, cores: int) -> Dealing:
        return self.route({}, counted(self.instances, cores))

    def blank(self) -> CostSketch | None:
        """The empty sketch that a task fills with measured costs; None: tasks measure nothing."""
        return None

    def decided(self, snapshot: WorkSnapshot, reason: str, memory: Memory) -> Decision[Dealing]:
        """The decision with this memory and the dealing that follows from it."""
        return Decision(self.route(memory, snapshot.instances), reason, memory)
