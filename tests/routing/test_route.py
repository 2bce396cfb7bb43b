"""A route keeps the join-matrix contract under shared state, and survives a commit."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.route import Route
from skewless.routing.splits import Split, divisors

HASHES = np.array([3, 2**62, 2**63 + 5, 2**64 - 1], np.uint64)


@st.composite
def routes(draw: st.DrawFn) -> Route:
    instances = draw(st.integers(1, 6))
    partitions = draw(st.sampled_from([3, 8]))
    owners = draw(st.lists(st.integers(0, instances - 1), min_size=partitions, max_size=partitions))
    table = PartitionTable(instances, tuple(owners))
    kind = draw(st.sampled_from(["table", "groups", "grid"]))
    if kind != "table":
        return Route(table, kind=kind, group=draw(st.integers(1, instances)))
    splits = []
    for h in draw(st.lists(st.sampled_from(HASHES.tolist()), unique=True)):
        members = draw(st.lists(st.integers(0, instances - 1), unique=True, min_size=1))
        place = int(partition_of(np.array([h], np.uint64), partitions)[0])
        splits.append(
            Split(h, place, tuple(members), draw(st.sampled_from(divisors(len(members)))))
        )
    return Route(table, tuple(splits))


@given(route=routes(), seed=st.integers(0, 2**32 - 1))
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


@given(route=routes())
def test_a_route_survives_json(route: Route) -> None:
    assert Route.from_json(json.loads(json.dumps(route.to_json()))) == route
