"""When SWARM acts: a pointer over five stages follows the throughput (Fig. 9 of the paper)."""

from dataclasses import dataclass
from typing import Any

FLIP, START, LAST = 0, 2, 4


@dataclass(frozen=True)
class Stages:
    """The pointer, the decision in force, how often it was taken, and R(S) of the last round.

    The pointer goes right when more was received than in the round before, and left otherwise. At
    the leftmost stage the decision flips, and the pointer returns to the middle.

    >>> calm = Stages().after(100.0, beta=20)
    >>> [calm := calm.after(100.0, beta=20) for _ in range(3)][-1].rebalances
    True
    """

    stage: int = START
    rebalances: bool = False
    taken: int = 0
    received: float = 0.0

    def after(self, received: float, beta: int) -> "Stages":
        """The stages after a round. A decision that was taken `beta` times flips anyway."""
        stage = min(self.stage + 1, LAST) if received > self.received else self.stage - 1
        if stage <= FLIP or self.taken >= beta:
            return Stages(START, not self.rebalances, 1, received)
        return Stages(stage, self.rebalances, self.taken + 1, received)

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "rebalances": self.rebalances,
            "taken": self.taken,
            "received": self.received,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Stages":
        if "stage" not in record:
            return Stages()
        return Stages(
            record["stage"], record["rebalances"], record["taken"], float(record["received"])
        )
