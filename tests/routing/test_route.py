"""A route keeps the join-matrix contract under shared state, and survives a commit."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.routing.entries import Entry
from skewless.routing.kinds import route_from_json
from skewless.routing.partitions import PartitionTable, partition_of, round_robin
from skewless.routing.route import Route
from skewless.routing.splits import Split
from skewless.routing.table import TableRoute, as_table
from tests.routing.cases import routes

HASHES = np.array([3, 2**62, 2**63 + 5, 2**64 - 1], np.uint64)


@given(route=routes(HASHES.tolist()), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_each_row_is_stored_once_and_each_pair_meets_once(route: Route, seed: int) -> None:
    rng = np.random.default_rng(seed)
    here: dict[str, list[tuple[int, int, bool]]] = {}
    keys: dict[str, np.ndarray] = {}
    for side in ("left", "right"):
        keys[side] = rng.choice(HASHES, 12)
        spread = rng.integers(0, 2**64, 12, dtype=np.uint64)
        visits = route.visits(side, keys[side], spread)
        here[side] = list(
            zip(visits.row.tolist(), visits.instance.tolist(), visits.home.tolist(), strict=True)
        )
        at_home = route.homes(side, keys[side], spread).tolist()
        assert at_home == [at for _, at, home in here[side] if home], "homes are what visits say"
        homes = [row for row, _, home in here[side] if home]
        assert sorted(homes) == list(range(12)), "every row has one home"
        for row, instance, home in here[side]:
            assert 0 <= instance < route.instances
            if home:
                place = int(partition_of(keys[side][row : row + 1], route.partitions)[0])
                assert place in route.reads(instance), "a row at home can read its key's state"
    met: dict[tuple[int, int], int] = {}
    for a, at, a_home in here["left"]:
        for b, there, b_home in here["right"]:
            same = keys["left"][a] == keys["right"][b]
            if same and at == there and (a_home or b_home or route.replicas_meet):
                met[a, b] = met.get((a, b), 0) + 1
    pairs = {(a, b) for a in range(12) for b in range(12) if keys["left"][a] == keys["right"][b]}
    assert met == dict.fromkeys(pairs, 1)


@given(route=routes(HASHES.tolist()))
def test_a_route_survives_json(route: Route) -> None:
    assert route_from_json(json.loads(json.dumps(route.to_json()))) == route


def test_a_kind_that_nobody_knows_is_refused() -> None:
    with pytest.raises(SkewlessError, match="kind: got 'ring'; takes one of table, groups, grid"):
        route_from_json({"kind": "ring"})


def test_an_entry_is_no_split_and_replicates_nothing() -> None:
    table = round_robin(4, 8)
    key = int(HASHES[1])
    place = int(partition_of(HASHES[1:2], 8)[0])
    shared = TableRoute(table, (Entry(key, place, (1, 3)),))
    assert (shared.spreads, shared.replicates, shared.replicas_meet) == (True, False, False)
    assert not TableRoute(table, (Entry(key, place, (1,)),)).spreads
    spread = np.random.default_rng(2).integers(0, 2**64, 1_000, dtype=np.uint64)
    visits = shared.visits("right", np.full(1_000, HASHES[1]), spread)
    assert len(visits.row) == 1_000
    assert np.abs(np.bincount(visits.instance, minlength=4) - [0, 500, 0, 500]).max() < 60
    assert [place in shared.reads(i) for i in (1, 3)] == [True, True]


@pytest.mark.parametrize(
    "build",
    [
        lambda: TableRoute(round_robin(2, 4), (Entry(5, 0, (2,)),)),
        lambda: TableRoute(round_robin(2, 4), (Entry(5, 0, ()),)),
        lambda: TableRoute(round_robin(2, 4), splits=(Split(5, 0, (1,), 1),)),
        lambda: TableRoute(round_robin(4, 4), splits=(Split(5, 0, (0, 1, 2), 2),)),
        lambda: TableRoute(round_robin(2, 4), (Entry(5, 0, (1,)),), (Split(5, 0, (0, 1), 1),)),
    ],
    ids=["no such instance", "nowhere", "split of one", "a ragged grid", "a key twice"],
)
def test_what_cannot_be_routed_is_refused(build) -> None:
    with pytest.raises(SkewlessError, match="0x0000000000000005"):
        build()


def test_only_tables_have_another_size() -> None:
    table = PartitionTable(3, (0, 1, 2, 2))
    entries = (Entry(5, 0, (1,)), Entry(6, 0, (2,)), Entry(7, 0, (1, 2)))
    splits = (Split(8, 0, (0, 1, 2), 1), Split(9, 0, (1, 2), 1))
    smaller = TableRoute(table, entries, splits).resized(2)
    assert smaller == TableRoute(
        PartitionTable(2, (0, 1, 0, 1)), entries[:1], (Split(8, 0, (0, 1), 1),)
    )
    assert TableRoute(table).resized(5) is None, "more instances than partitions"
    for kind in ("groups", "grid"):
        fixed = route_from_json({"kind": kind, "group": 2, **table.to_json()})
        assert fixed.resized(2) is None
        with pytest.raises(SkewlessError, match=f"kind '{kind}'"):
            as_table(fixed)
