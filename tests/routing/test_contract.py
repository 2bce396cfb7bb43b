"""The join-matrix contract (eq. 5 and 6), one test for every route and every plan: each row is
stored once, and each pair of equal keys meets once, in whatever batches the two arrive."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.planning.auto import Auto
from skewless.planning.contrand import ContRand
from skewless.planning.joinmatrix import JoinMatrix
from skewless.planning.plan import validate
from skewless.planning.snapshot import HotKey, Snapshot
from skewless.routing.grid import grid_shape
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.route import Route, Side
from skewless.routing.splits import Split, replicas
from skewless.routing.table import TableRoute
from tests.planning.cases import planned
from tests.routing.cases import routes

SIDES: tuple[Side, Side] = ("left", "right")
KEYS = np.random.default_rng(5).integers(0, 2**64, 6, dtype=np.uint64)


@dataclass(frozen=True)
class Row:
    """A row that was routed: when, to where, and where it stays."""

    side: Side
    key: int
    batch: int
    visits: frozenset[int]
    home: int
    route: Route


Keys = list[tuple[list[int], list[int]]]  # per batch: the keys of the left rows, of the right rows
BATCHES = st.lists(
    st.tuples(*(st.lists(st.integers(0, len(KEYS) - 1), max_size=6),) * 2), min_size=1, max_size=4
)


def routed(routes: Sequence[Route], batches: Keys, rng: np.random.Generator) -> list[Row]:
    """Every row of every batch, sent by the route that is in force in its batch."""
    rows = []
    for number, (route, keys) in enumerate(zip(routes, batches, strict=True)):
        for side, of_side in zip(SIDES, keys, strict=True):
            hashes = KEYS[np.array(of_side, int)]
            spread = rng.integers(0, 2**64, len(hashes), dtype=np.uint64)
            visits = route.visits(side, hashes, spread)
            assert (np.diff(visits.row) >= 0).all()
            assert ((visits.instance >= 0) & (visits.instance < route.instances)).all()
            for index, key in enumerate(of_side):
                own = visits.row == index
                where = visits.instance[own].tolist()
                assert len(where) == len(set(where)), "a row visits an instance once"
                (home,) = visits.instance[own & visits.home].tolist()  # stored exactly once
                rows.append(Row(side, key, number, frozenset(where), home, route))
            assert len(set(visits.row.tolist())) == len(of_side), "no row is lost, none is made up"
    return rows


def meetings(left: Row, right: Row) -> int:
    """On how many instances two rows are joined: the definition that `Route` gives."""
    if left.batch == right.batch:
        both = left.visits & right.visits
        homes = {left.home, right.home}
        return len(both if left.route.replicas_meet else both & homes)
    new = max(left, right, key=lambda row: row.batch)
    place = int(partition_of(KEYS[new.key : new.key + 1], new.route.partitions)[0])
    return int(place in new.route.reads(new.home))


@st.composite
def planned_routes(draw: st.DrawFn, batches: int) -> list[Route]:
    """The routes that a policy makes one after the other while the load jumps about."""
    policy = Auto(draw(st.integers(2, 6)), threshold=0.01)
    table = policy.table(cores=2)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    partitions = partition_of(KEYS, table.partitions)
    splits: tuple[Split, ...] = ()
    state: dict[str, Any] = {}
    made: list[Route] = []
    for _ in range(batches):
        made.append(TableRoute(table, splits=splits))
        key_loads = rng.pareto(0.5, len(KEYS)) * 10
        loads = rng.random(table.partitions)
        np.add.at(loads, partitions, key_loads)
        keys = tuple(
            HotKey(int(KEYS[k]), int(partitions[k]), float(key_loads[k]), *rng.integers(1, 99, 2))
            for k in range(len(KEYS))
        )
        snapshot = Snapshot(table, loads, loads, 100 * loads, keys, splits)
        plan, state = planned(policy, snapshot, state)
        validate(plan, snapshot)
        table, splits = plan.table, plan.splits
    return made


# A strategy for one route per batch: state that any instance can read lets them be any at all.
ROUTES: dict[str, Any] = {
    "any": lambda n: st.lists(routes(KEYS.tolist(), most=7), min_size=n, max_size=n),
    "planned by Auto": planned_routes,
    "ContRand": lambda n: (
        st.integers(1, 9)
        .flatmap(lambda i: st.integers(1, i).map(lambda g: ContRand(i, g).start(cores=2)))
        .map(lambda route: [route] * n)
    ),
    "JoinMatrix": lambda n: st.integers(1, 12).map(lambda i: [JoinMatrix(i).start(cores=2)] * n),
}


@pytest.mark.parametrize("name", ROUTES)
@given(data=st.data(), batches=BATCHES, seed=st.integers(0, 2**32))
def test_each_row_is_stored_once_and_each_pair_meets_once(
    name: str, data: st.DataObject, batches: Keys, seed: int
) -> None:
    drawn: list[Route] = data.draw(ROUTES[name](len(batches)))
    rows = routed(drawn, batches, np.random.default_rng(seed))
    left = [row for row in rows if row.side == "left"]
    right = [row for row in rows if row.side == "right"]
    pairs = [(one, other) for one in left for other in right if one.key == other.key]
    met = Counter(meetings(one, other) for one, other in pairs)
    assert met == Counter({1: len(pairs)} if pairs else {})


def test_the_rows_of_a_split_key_are_spread_evenly_and_only_one_side_is_replicated() -> None:
    table = PartitionTable(4, (0,) * 8)
    split = Split(int(KEYS[0]), 0, (1, 2, 3), lines=3)
    route = TableRoute(table, splits=(split,))
    spread = np.random.default_rng(1).integers(0, 2**64, 9_000, dtype=np.uint64)
    hashes = np.full(9_000, KEYS[0])
    left = route.visits("left", hashes, spread)
    assert len(left.row) == 9_000
    assert np.bincount(left.instance, minlength=4)[0] == 0
    assert np.abs(np.bincount(left.instance)[1:] - 3_000).max() < 300
    right = route.visits("right", hashes, spread)
    assert np.bincount(right.instance, minlength=4).tolist() == [0, 9_000, 9_000, 9_000]
    assert np.abs(np.bincount(right.instance[right.home])[1:] - 3_000).max() < 300
    other = route.visits("right", np.full(10, KEYS[1]), spread[:10])
    assert other.instance.tolist() == [0] * 10


def test_a_split_in_a_grid_needs_fewer_replicas_than_one_in_a_line() -> None:
    table = PartitionTable(16, (0,) * 16)
    spread = np.random.default_rng(1).integers(0, 2**64, 4_000, dtype=np.uint64)
    hashes = np.full(4_000, KEYS[0])
    sent = {}
    for lines in (1, 2, 4, 16):
        route = TableRoute(table, splits=(Split(int(KEYS[0]), 0, tuple(range(16)), lines),))
        both = [route.visits(side, hashes, spread) for side in SIDES]
        sent[lines] = sum(len(visits.row) for visits in both) / 4_000
        assert sent[lines] - 2 == replicas(1, 1, lines, 16 // lines)
    assert sent == {1: 17, 2: 10, 4: 8, 16: 17}


def test_groups_and_grids_store_evenly() -> None:
    spread = np.random.default_rng(1).integers(0, 2**64, 12_000, dtype=np.uint64)
    one_key = np.full(12_000, KEYS[0])
    group = ContRand(6, group=3).start(cores=2).visits("left", one_key, spread)
    stored = np.bincount(group.instance[group.home], minlength=6)
    assert np.abs(stored[stored > 0] - 4_000).max() < 400
    assert (stored > 0).sum() == 3
    grid = JoinMatrix(6).start(cores=2).visits("right", one_key, spread)
    assert np.abs(np.bincount(grid.instance[grid.home], minlength=6) - 2_000).max() < 250


@pytest.mark.parametrize(
    ("instances", "shape"), [(1, (1, 1)), (4, (2, 2)), (7, (1, 7)), (12, (3, 4)), (28, (4, 7))]
)
def test_the_grid_is_as_square_as_can_be(instances: int, shape: tuple[int, int]) -> None:
    assert grid_shape(instances) == shape
