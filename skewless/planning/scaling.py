"""How many instances there may be: as many as asked for, or a range that follows the load."""

from skewless.errors import bad_argument
from skewless.planning.checks import check_instances, counted

Instances = int | tuple[int, int] | None
# An instance that works for longer than this per batch is busy.
BUSY_MS = 1_000.0


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
    """The number of instances to start with, or to continue with after `current`.

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
    """The largest number of instances that the query may reach."""
    return instances[1] if isinstance(instances, tuple) else wanted(instances, cores)
