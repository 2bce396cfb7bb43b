"""Checks of the arguments that policies have in common."""

from skewless.errors import bad_argument
from skewless.routing.partitions import MAX_PARTITIONS


def check_instances(instances: object) -> None:
    """Refuse a number of instances that no table can have."""
    check_whole("instances", instances, 1, MAX_PARTITIONS)


def check_count(instances: object) -> None:
    """Refuse anything but None (one per core) or a number of instances."""
    if instances is not None:
        check_instances(instances)


def counted(instances: int | None, cores: int) -> int:
    """The number of instances on a cluster with this many cores.

    >>> counted(None, cores=8), counted(3, cores=8)
    (8, 3)
    """
    return max(1, cores) if instances is None else instances


def check_partitions(partitions: object, instances: int | None) -> None:
    """Refuse fewer partitions than instances: some instance could never get any."""
    check_whole("partitions", partitions, instances or 1, MAX_PARTITIONS)


def check_whole(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise bad_argument(name, value, f"a whole number from {least:,} to {most:,}")


def check_number(name: str, value: object, least: float, most: float | None = None) -> None:
    """Refuse anything but a number above `least` and, if given, at most `most`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    upper = float("inf") if most is None else most
    if not (is_number and least < value <= upper and value != float("inf")):  # type: ignore[operator]
        takes = f"a number above {least:g}" + ("" if most is None else f" and up to {most:g}")
        raise bad_argument(name, value, takes)
