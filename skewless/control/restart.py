"""A committed state under the current policy and number of cores; no stored row moves."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from skewless.control.memory import Balance, Planner
from skewless.control.scaling import resized_by
from skewless.planning.policy import RoutingPolicy
from skewless.planning.scaling import wanted
from skewless.planning.tiles.policy import TilePolicy
from skewless.routing.route import Route
from skewless.state.commit import OperatorState


def adopt(
    policy: RoutingPolicy | TilePolicy,
    state: OperatorState,
    cores: int,
    *,
    start: Callable[[int], Route] | None = None,
    keeps_route: bool = True,
) -> OperatorState:
    """The state under this policy.

    If only the number of instances has changed, learned loads are kept; another policy starts from
    scratch, with the route of `start`, and so does a route that can no longer be used.
    """
    planner = Planner.from_json(state.planner)
    today, before = policy.describe(), planner.policy
    route, balance = state.route, planner.balance
    count = wanted(policy.instances, cores, route.instances)
    if today == before and count == route.instances and keeps_route:
        return state
    keeps_route = keeps_route and same_but_for_instances(before, today)
    resized = resized_by(policy, route, count) if keeps_route else None
    if resized is not None:
        route, balance = resized, balance.resized(count)
    else:
        fresh = (start or policy.start)(cores)
        route, balance = fresh, Balance.initial(fresh.instances)
    adopted = Planner(today, balance, probing=planner.probing, map=planner.map)
    return replace(state, route=route, planner=adopted.to_json())


def same_but_for_instances(before: dict[str, Any], today: dict[str, Any]) -> bool:
    """Whether two descriptions of a policy differ in nothing but the number of instances."""
    return {**before, "instances": None} == {**today, "instances": None}
