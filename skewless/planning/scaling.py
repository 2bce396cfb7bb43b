"""How many instances there should be: as many as asked for, or as the load needs within a range."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from skewless.errors import bad_argument
from skewless.planning.policy import check_instances, counted

Instances = int | tuple[int, int] | None
# An instance that works for longer per batch is busy.
BUSY_MS = 1_000.0

# More instances are wanted when every one of them has been busy for so many batches in a row, fewer
# when all were idle for longer: an instance too many costs little, one too few a late batch.
_GROW_AFTER = 2
_SHRINK_AFTER = 5
# What is aimed at, as a share of the bound at which an instance counts as busy: with room to grow
# before the next change, and far enough from being idle.
_AIM = 0.7
_IDLE = 0.3


def check_range(instances: object) -> None:
    """Refuse what is neither None, a number of instances, nor (low, high)."""
    if instances is None:
        return
    if not isinstance(instances, tuple):
        check_instances(instances)
        return
    if len(instances) != 2:
        raise bad_argument("instances", instances, "a number, or (lowest, highest)")
    for bound in instances:
        check_instances(bound)
    if instances[0] > instances[1]:
        raise bad_argument("instances", instances, "(lowest, highest), the lower one first")


def wanted(instances: Instances, cores: int, current: int | None = None) -> int:
    """With how many instances to start, or to go on after `current`.

    >>> wanted(None, cores=8), wanted(3, cores=8), wanted((2, 4), cores=8)
    (8, 3, 4)
    >>> wanted((2, 4), cores=8, current=3)
    3
    """
    if isinstance(instances, tuple):
        low, high = instances
        return min(max(counted(current, cores), low), high)
    return counted(instances, cores)


def largest(instances: Instances, cores: int) -> int:
    """How many instances there may come to be."""
    return instances[1] if isinstance(instances, tuple) else wanted(instances, cores)


def described(instances: Instances) -> int | list[int] | None:
    """As it comes back from a commit."""
    return list(instances) if isinstance(instances, tuple) else instances


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
