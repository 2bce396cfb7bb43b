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

    A commit keeps the policy's memory, and no dealing: `route` makes the same one of it again.
    """

    instances: int | None = None

    @abstractmethod
    def route(self, memory: Memory, instances: int) -> Dealing:
        """The dealing that a policy with this memory decides; {}: that of a new query.

        After a restart there may be another number of instances than the memory is of.
        """

    def start(self, cores: int) -> Dealing:
        return self.route({}, counted(self.instances, cores))

    def blank(self) -> CostSketch | None:
        """The empty sketch that a task learns into; None: nothing has to be measured."""
        return None

    def decided(self, snapshot: WorkSnapshot, reason: str, memory: Memory) -> Decision[Dealing]:
        """The decision that leaves this memory."""
        return Decision(self.route(memory, snapshot.instances), reason, memory)
