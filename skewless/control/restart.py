"""A committed state under today's policy and number of cores; state is shared: nothing moves."""

from dataclasses import replace

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
    same_but_for_instances = {**today, "instances": None} == {**before, "instances": None}
    resized = route.resized(count) if same_but_for_instances else None
    if resized is not None:
        route, balance = resized, balance.resized(count)
    else:
        fresh = policy.start(cores)
        route, balance = fresh, Balance.initial(fresh.instances)
    adopted = Planner(today, balance, probing=planner.probing)
    return replace(state, route=route, planner=adopted.to_json())
