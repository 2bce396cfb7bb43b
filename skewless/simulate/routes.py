"""Turns routing tables, split keys and replicating routers into the sets that the kernel reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.errors import SkewlessError
from skewless.routing.grid import GridRoute
from skewless.routing.groups import GroupRoute
from skewless.routing.route import Route
from skewless.routing.table import TableRoute, as_table
from skewless.simulate.kernel import Routes

Sets = npt.NDArray[np.int64]  # [set, member]


@dataclass(frozen=True, eq=False)
class Ways:
    """The sets of instances among which each side's tuples choose."""

    left: Sets
    right: Sets
    single_key: bool = False

    def __post_init__(self) -> None:
        for name, own, other in (
            ("left", self.left, self.right),
            ("right", self.right, self.left),
        ):
            if own.ndim != 2 or not own.size:
                raise SkewlessError(f"{name}: takes at least one set of at least one instance")
            # Every pair meets once: my j-th instance holds the other side's j-th set.
            if own.shape[1] != other.shape[0] or not (other == own.T).all():
                raise SkewlessError(f"{name}: every set must meet each set of the other side once")


def to_one(instance: int) -> Ways:
    """Both sides go to the same instance."""
    return Ways(np.array([[instance]]), np.array([[instance]]))


def grid(instances: Sequence[int], rows: int, columns: int, *, single_key: bool = False) -> Ways:
    """A left row goes along a row of the matrix, a right row down a column."""
    cells = np.asarray(instances)[: rows * columns].reshape(rows, columns)
    return Ways(cells, cells.T, single_key)


def compile_routes(routes: Sequence[Ways], of_key: npt.NDArray[np.int32]) -> Routes:
    """All routes in flat arrays."""
    if of_key.size and not 0 <= int(of_key.min()) <= int(of_key.max()) < len(routes):
        raise SkewlessError(f"of_key: takes numbers of routes from 0 to {len(routes) - 1}")
    shape = (len(routes), 2)
    first, sets, size = (np.zeros(shape, np.int64) for _ in range(3))
    set_id = np.zeros(len(routes), np.int64)
    members: list[npt.NDArray[np.int64]] = []
    at = number = 0
    for r, route in enumerate(routes):
        set_id[r] = number
        number += len(route.right)
        for side, chosen in enumerate((route.left, route.right)):
            sets[r, side], size[r, side] = chosen.shape
            first[r, side] = at
            members.append(chosen.ravel())
            at += chosen.size
    return Routes(
        of_key,
        np.array([route.single_key for route in routes]),
        first,
        sets,
        size,
        set_id,
        np.concatenate(members).astype(np.int64),
    )


def routes_of(
    route: Route,
    hashes: npt.NDArray[np.uint64],
    partition_of_key: npt.NDArray[np.int64],
) -> Routes:
    """Where every key goes under a route."""
    owner = route.table.owners[partition_of_key].astype(np.int32)
    if isinstance(route, GridRoute):
        everywhere = grid(range(route.instances), *route.shape)
        return compile_routes([everywhere], np.zeros_like(owner))
    if isinstance(route, GroupRoute):
        firsts = range(0, route.instances, route.group)
        # The left side probes: it visits the whole group, a right row is stored on one member.
        groups = [grid(route.members(first), 1, len(route.members(first))) for first in firsts]
        return compile_routes(groups, owner // np.int32(route.group))
    ways = [to_one(instance) for instance in range(route.instances)]
    for split in as_table(route).splits:
        owner[hashes == np.uint64(split.hash)] = len(ways)
        ways.append(grid(split.members, split.lines, split.columns, single_key=True))
    if as_table(route).entries:
        _send_entries(as_table(route), hashes, owner)
    return compile_routes(ways, owner)


def _send_entries(
    route: TableRoute, hashes: npt.NDArray[np.uint64], owner: npt.NDArray[np.int32]
) -> None:
    """Keys of the key table go to their instance."""
    where = {entry.hash: entry.members for entry in route.entries}
    for key in np.flatnonzero(np.isin(hashes, np.array(list(where), np.uint64))).tolist():
        # A join has no entries of several instances: their rows would not meet.
        (owner[key],) = where[int(hashes[key])]
