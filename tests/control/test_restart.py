"""A restart under another number of instances, or another policy."""

import json
from typing import Any

from skewless.control.memory import Balance
from skewless.control.restart import adopt
from skewless.planning.auto import Auto
from skewless.planning.contrand import ContRand
from skewless.planning.mixed import Mixed
from skewless.routing.entries import Entry
from skewless.routing.partitions import PartitionTable
from skewless.routing.route import Route
from skewless.routing.table import TableRoute
from skewless.state.commit import OperatorState
from tests.control.test_loop import keys_in


def state_of(policy: Any, route: Route) -> OperatorState:
    balance = Balance.initial(route.instances)
    planner = {"policy": policy.describe(), "balance": balance.to_json(), "round": {}}
    return OperatorState(route, {"left": 5}, 3, (), json.loads(json.dumps(planner)), 2)


def test_another_number_of_instances_keeps_the_table() -> None:
    key = keys_in(3, 4, 1)[0]
    route = TableRoute(PartitionTable(2, (1, 1, 0, 1)), (Entry(key, 3, (0,)),))
    policy = Mixed(instances=3)
    after = adopt(policy, state_of(Mixed(instances=2), route), 1)
    assert after.route.table.assignment == (2, 1, 0, 1), "the newcomer takes from the fullest"
    assert after.route.instances == 3
    assert after.route.entries == route.entries
    assert (after.previous_us, after.watermark_us) == (2, 3), "what is the operator's stays"
    assert after.planner["policy"] == policy.describe()
    assert after.planner["balance"]["order"] == [0, 1, 2]


def test_the_same_policy_changes_nothing_and_another_starts_anew() -> None:
    route = TableRoute(PartitionTable(2, (1, 1, 0, 1)))
    policy = Mixed(instances=(1, 3))
    state = state_of(policy, route)
    assert adopt(policy, state, 1) is state, "a number that it has chosen"
    other = Auto(instances=2)
    after = adopt(other, state, 1)
    assert after.route == other.start(1)


def test_a_route_that_has_no_other_size_is_made_anew() -> None:
    policy = ContRand(instances=4, group=2)
    state = state_of(policy, policy.start(1))
    after = adopt(ContRand(instances=6, group=2), state, 1)
    assert after.route == ContRand(instances=6, group=2).start(1)
