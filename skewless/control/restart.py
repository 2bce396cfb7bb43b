"""A committed state under today's policy and number of cores; state is shared: nothing moves."""

from dataclasses import replace
from typing import Any

from skewless.control.memory import Balance, Planner
from skewless.planning.policy import RoutingPolicy
from skewless.planning.scaling import wanted
from skewless.state.commit import OperatorState


def adopt(policy: RoutingPolicy, state: OperatorState, cores: int) -> OperatorState:
    """The state as the policy goes on with it.

    Another number of instances keeps what was learned; another policy starts anew.
    """
    planner = Planner.from_json(state.planner)
    today, before = policy.describe(), planner.policy
    route, balance = state.route, planner.balance
    count = wanted(policy.instances, cores, route.instances)
    if today == before and count == route.instances:
        return state
    resized = route.resized(count) if same_but_for_instances(before, today) else None
    if resized is not None:
        route, balance = resized, balance.resized(count)
    else:
        fresh = policy.start(cores)
        route, balance = fresh, Balance.initial(fresh.instances)
    return replace(state, route=route, planner=Planner(today, balance).to_json())


def same_but_for_instances(before: dict[str, Any], today: dict[str, Any]) -> bool:
    """Whether two descriptions of a policy differ in nothing but the number of instances."""
    return {**before, "instances": None} == {**today, "instances": None}
