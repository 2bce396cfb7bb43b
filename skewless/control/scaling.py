"""More instances while all are busy, fewer while all are idle, where a policy allows a range."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from skewless.control.memory import Balance
from skewless.planning.policy import RoutingPolicy
from skewless.planning.scaling import Instances
from skewless.planning.tiles.policy import TilePolicy
from skewless.routing.route import Route
from skewless.routing.tiles import TileRoute

# Instances are added after this many busy batches in a row, and removed after more idle ones: an
# instance too many costs little, but one too few makes batches late.
_GROW_AFTER = 2
_SHRINK_AFTER = 5
# The target load, as a share of `busy_ms`: it leaves room to grow, and is well above idle.
_AIM = 0.7
_IDLE = 0.3


def rescaled(
    policy: RoutingPolicy | TilePolicy, route: Route, balance: Balance, work_ms: Sequence[float]
) -> tuple[Route, Balance]:
    """The route over as many instances as the load of the batch needs."""
    if not isinstance(policy.instances, tuple):
        return route, balance
    scale = scaled(policy.instances, policy.busy_ms, work_ms, balance.streak)
    balance = replace(balance, streak=scale.streak)
    count = min(scale.instances, route.partitions)
    resized = None if count == route.instances else resized_by(policy, route, count)
    return (route, balance) if resized is None else (resized, balance.resized(count))


def resized_by(policy: RoutingPolicy | TilePolicy, route: Route, instances: int) -> Route | None:
    """A policy's route for another number of instances; None: it has to be made anew."""
    if isinstance(policy, RoutingPolicy):
        return policy.resized(route, instances)
    assert isinstance(route, TileRoute), "a policy for maps has tiles"
    return policy.resized(route, instances)


@dataclass(frozen=True)
class Scale:
    """The next number of instances, and for how many batches they were busy (or, below 0, idle)."""

    instances: int
    streak: int


def scaled(
    instances: Instances, busy_ms: float, work_ms: Sequence[float], streak: int = 0
) -> Scale:
    """The number of instances after a batch in which they worked for `work_ms` each.

    >>> scaled((1, 8), 100.0, [150.0, 140.0], streak=1)
    Scale(instances=5, streak=0)
    >>> scaled(2, 100.0, [150.0, 140.0], streak=1)
    Scale(instances=2, streak=0)
    """
    now = len(work_ms)
    if not isinstance(instances, tuple):
        return Scale(now, 0)
    low, high = instances
    total = sum(work_ms)
    if min(work_ms) > busy_ms:
        streak = max(streak, 0) + 1
    elif total < _IDLE * busy_ms * now:
        streak = min(streak, 0) - 1
    else:
        streak = 0
    fitting = max(1, math.ceil(total / (_AIM * busy_ms)))
    if streak >= _GROW_AFTER and now < high:
        return Scale(min(high, max(fitting, now + 1)), 0)
    if streak <= -_SHRINK_AFTER and now > low:
        return Scale(max(low, min(fitting, now - 1)), 0)
    return Scale(now, streak)
