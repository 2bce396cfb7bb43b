"""What the control loop remembers from batch to batch: the planner's part of a commit."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skewless.load.cost import CostModel
from skewless.planning.decision import Memory
from skewless.planning.snapshot import Loads


@dataclass(frozen=True)
class Balance:
    """The learned loads and costs, and the order of the next batch's tasks."""

    order: tuple[int, ...]  # instances, the heaviest first
    cost: CostModel = field(default_factory=CostModel.empty)
    load: Loads | None = None  # smoothed, per partition
    rows: Loads | None = None
    memory: Memory = field(default_factory=dict)  # the policy's own
    batches: int = 0  # seen so far
    streak: int = 0  # batches for which all instances were busy; below 0: idle

    @staticmethod
    def initial(instances: int) -> "Balance":
        return Balance(tuple(range(instances)))

    def resized(self, instances: int) -> "Balance":
        """For another number of instances; the policy's memory no longer applies."""
        return replace(self, memory={}, order=tuple(range(instances)))

    def to_json(self) -> dict[str, Any]:
        return {
            "cost": self.cost.to_json(),
            "load": None if self.load is None else np.round(self.load, 4).tolist(),
            "rows": None if self.rows is None else np.round(self.rows, 1).tolist(),
            "memory": self.memory,
            "order": list(self.order),
            "batches": self.batches,
            "streak": self.streak,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Balance":
        return Balance(
            cost=CostModel.from_json(record["cost"]),
            load=None if record["load"] is None else np.array(record["load"], np.float64),
            rows=None if record["rows"] is None else np.array(record["rows"], np.float64),
            memory=record["memory"],
            order=tuple(record["order"]),
            batches=record["batches"],
            streak=record["streak"],
        )


@dataclass(frozen=True)
class Planner:
    """`OperatorState.planner` of an operator with a control loop; only the loop reads it."""

    policy: dict[str, Any]  # as it described itself
    balance: Balance
    round: dict[str, Any] | None = None  # what progress tells of the last turn
    probing: dict[str, Any] | None = None  # where a join may shed: what it has learned
    map: dict[str, Any] | None = None  # of subscriptions: what is known of points and rectangles

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "balance": self.balance.to_json(),
            "round": self.round,
            "probing": self.probing,
            "map": self.map,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Planner":
        return Planner(
            record["policy"],
            Balance.from_json(record["balance"]),
            record["round"],
            record.get("probing"),  # earlier versions have none
            record.get("map"),
        )
