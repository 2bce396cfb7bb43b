"""All kinds of routes, for reading one back from a commit."""

from typing import Any

from skewless.errors import SkewlessError
from skewless.routing.grid import GridRoute
from skewless.routing.groups import GroupRoute
from skewless.routing.route import Route
from skewless.routing.table import TableRoute
from skewless.routing.tiles import TileRoute

KINDS: dict[str, type[Route]] = {
    kind.kind: kind for kind in (TableRoute, GroupRoute, GridRoute, TileRoute)
}


def route_from_json(record: dict[str, Any]) -> Route:
    """The route that `Route.to_json` wrote.

    >>> from skewless.routing.partitions import round_robin
    >>> route_from_json(GridRoute(round_robin(4, 4)).to_json()).instances
    4
    """
    kind = KINDS.get(record["kind"])
    if kind is None:
        raise SkewlessError(f"kind: got {record['kind']!r}; takes one of {', '.join(KINDS)}")
    return kind.from_json(record)
