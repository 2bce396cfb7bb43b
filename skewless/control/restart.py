"""A committed state under the current policy and number of cores; no stored row moves."""

from dataclasses import replace
from typing import Any

from skewless.control.memory import Balance, Planner
from skewless.planning.policy import RoutingPolicy
from skewless.planning.scaling import wanted
from skewless.state.commit import OperatorState


def adopt(policy: RoutingPolicy, state: OperatorState, cores: int) -> OperatorState:
    """The state under this policy.

    If only the number of instances has changed, learned loads are kept; another policy starts from
    scratch.
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
    adopted = Planner(today, balance, probing=planner.probing)
    return replace(state, route=route, planner=adopted.to_json())


def same_but_for_instances(before: dict[str, Any], today: dict[str, Any]) -> bool:
    """Whether two descriptions of a policy differ in nothing but the number of instances."""
    return {**before, "instances": None} == {**today, "instances": None}
