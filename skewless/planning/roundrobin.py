"""Round robin: every instance gets every k-th row, whatever the rows cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skewless.load.sketches import CostSketch
from skewless.planning.policy import check_count, counted
from skewless.planning.shuffle.policy import Dealing, InstanceWork


@dataclass(frozen=True)
class RoundRobin:
    """Rows are dealt out in turn: what Storm's shuffle grouping and Spark's repartition do.

    >>> RoundRobin().count(cores=8)
    8
    """

    instances: int | None = None

    def __post_init__(self) -> None:
        check_count(self.instances)

    def count(self, cores: int) -> int:
        return counted(self.instances, cores)

    def describe(self) -> dict[str, Any]:
        return {"policy": "RoundRobin", "instances": self.instances}

    def blank(self) -> CostSketch | None:
        return None

    def initial(self, instances: int) -> dict[str, Any]:
        return {}

    def learn(self, memory: dict[str, Any], work: Sequence[InstanceWork]) -> dict[str, Any]:
        return memory

    def dealing(self, memory: dict[str, Any], instances: int) -> Dealing:
        return Dealing(instances)
