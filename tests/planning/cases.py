"""Snapshots written as lists of loads per instance, and the convergence harness's cluster."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from skewless.planning.plan import Plan
from skewless.planning.policy import RoutingPolicy
from skewless.planning.snapshot import HotKey, Snapshot
from skewless.routing.partitions import PartitionTable
from skewless.routing.table import TableRoute


def snapshot(
    loads: Sequence[Sequence[float]],
    stored: Sequence[Sequence[float]] | None = None,
    hot_keys: Sequence[HotKey] = (),
) -> Snapshot:
    """`[[5, 1], []]`: two instances, the first with two partitions, the second with none."""
    flat = np.array([load for owned in loads for load in owned], np.float64)
    rows = flat if stored is None else np.array([r for owned in stored for r in owned], float)
    owners = [instance for instance, owned in enumerate(loads) for _ in owned]
    return Snapshot(
        PartitionTable(len(loads), tuple(owners)), flat, rows, flat, hot_keys=tuple(hot_keys)
    )


def layout(plan: Plan, loads: np.ndarray) -> list[list[float]]:
    """The loads per instance after a plan, each list sorted."""
    return [
        sorted(loads[sorted(plan.table.partitions_of(i))].tolist())
        for i in range(plan.table.instances)
    ]


def key_in(partition: int, partitions: int, load: float, left: int = 10, right: int = 10) -> HotKey:
    """A hot key whose hash falls into a partition."""
    hash_ = ((2 * partition + 1) << 63) // partitions
    return HotKey(hash_, partition, load, left, right)


def planned(
    policy: RoutingPolicy, snapshot: Snapshot, memory: dict[str, Any]
) -> tuple[Plan, dict[str, Any]]:
    """The plan behind what a policy decides, which is what the next route says, and its memory."""
    decision = policy.plan(snapshot, memory)
    plan = decision.plan
    assert isinstance(plan, Plan)
    assert decision.reason == plan.reason
    if decision.route is not None:
        assert decision.route == TableRoute(plan.table, splits=plan.splits)
    return plan, decision.memory
