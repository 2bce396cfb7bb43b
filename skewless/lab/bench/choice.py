"""Which workloads, scenarios or engines a user has named, of those that there are."""

from collections.abc import Collection, Sequence

from skewless.errors import bad_argument


def chosen(argument: str, names: Collection[str] | None, available: Sequence[str]) -> list[str]:
    """The names that are wanted, all of them for None, in the order in which they are run.

    >>> chosen("engine", ["floor", "skewless"], ["skewless", "spark", "floor"])
    ['skewless', 'floor']
    >>> chosen("engine", ["flour"], ["skewless", "floor"])
    Traceback (most recent call last):
    skewless.errors.SkewlessError: engine: got 'flour'; takes skewless, floor
    """
    if names is not None and (unknown := set(names) - set(available)):
        raise bad_argument(argument, ", ".join(sorted(unknown)), ", ".join(available))
    return [name for name in available if names is None or name in names]
