"""What every balancing policy offers the engine."""

from typing import Any, Protocol

from skewless.errors import bad_argument
from skewless.planning.plan import Plan
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import MAX_PARTITIONS, PartitionTable
from skewless.routing.router import Router


class Policy(Protocol):
    """Turns options into a routing table, and measured load into the next one."""

    def table(self, cores: int) -> PartitionTable:
        """The table that a new query starts with on a cluster of so many cores."""
        ...

    def describe(self) -> dict[str, Any]:
        """The policy and its options. A restart under the same ones keeps the committed table."""
        ...

    def plan(self, snapshot: Snapshot, state: dict[str, Any]) -> tuple[Plan, dict[str, Any]]:
        """The next routing, and what the planner wants to remember until it is asked again.

        `state` is what it returned the last time, {} at first; it must survive JSON.
        """
        ...


class Replicating(Policy, Protocol):
    """A policy that balances by sending rows to several instances instead of moving partitions."""

    def routing(self, cores: int) -> Router:
        """Where rows go; `table` is only the base that it starts from."""
        ...


def check_instances(instances: object) -> None:
    """Refuse a number of instances that no table can have."""
    check_whole("instances", instances, 1, MAX_PARTITIONS)


def check_partitions(partitions: object, instances: int) -> None:
    """Refuse fewer partitions than instances: some instance could never get any."""
    check_whole("partitions", partitions, instances, MAX_PARTITIONS)


def check_whole(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise bad_argument(name, value, f"a whole number from {least:,} to {most:,}")


def check_number(name: str, value: object, least: float, most: float | None = None) -> None:
    """Refuse what is no number above `least` and, if given, up to `most`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    upper = float("inf") if most is None else most
    if not (is_number and least < value <= upper and value != float("inf")):  # type: ignore[operator]
        takes = f"a number above {least:g}" + ("" if most is None else f" and up to {most:g}")
        raise bad_argument(name, value, takes)
