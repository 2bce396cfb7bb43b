"""The control loop of a map, from reports to the next dealing."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skewless.control.dealing import DealingLoop, work_of
from skewless.errors import SkewlessError
from skewless.load.report import Report
from skewless.planning.leastwork import LeastWork
from skewless.planning.roundrobin import RoundRobin
from skewless.planning.shuffle.dealing import Dealing
from skewless.planning.shuffle.policy import ShufflePolicy
from skewless.state.commit import OperatorState
from tests.control.test_loop import report

HASHES = np.arange(10, dtype=np.uint64)
COSTS = np.array([1.0] * 9 + [100.0])


def measured(policy: ShufflePolicy, instance: int) -> Report:
    """A task of a map that has seen ten keys once each."""
    blank = policy.blank()
    costs: dict[str, Any] = {
        "busyMs": 109.0,
        "estimatedMs": 10.0,
        "sketch": None if blank is None else blank.update(HASHES, COSTS).to_json(),
    }
    return replace(report(instance, {}), rows={"input": 10}, costs=costs)


def restarted(state: OperatorState) -> OperatorState:
    return OperatorState.from_json(json.loads(json.dumps(state.to_json())))


def test_what_a_batch_teaches_is_dealt_by_before_and_after_a_restart() -> None:
    policy = LeastWork(2)
    loop = DealingLoop(policy)
    state = loop.start(cores=8)
    assert loop.dealing(state) == Dealing(2)
    reports = [measured(policy, i) for i in (1, 0)]
    decided = policy.plan(work_of(reports), state.planner["memory"]).route
    assert decided is not None
    state = loop.after(state, reports)
    for now in (state, restarted(state)):
        dealing = loop.dealing(now)
        assert dealing.costs(HASHES).tolist() == decided.costs(HASHES).tolist()
        assert dealing.costs(HASHES) == pytest.approx(COSTS)


def test_a_policy_that_measures_nothing_remembers_nothing() -> None:
    loop = DealingLoop(RoundRobin(2))
    state = loop.start(cores=8)
    assert loop.after(state, [measured(loop.policy, i) for i in range(2)]) == state


def test_other_cores_keep_what_was_learned() -> None:
    policy = LeastWork()
    loop = DealingLoop(policy)
    state = loop.after(loop.start(cores=2), [measured(policy, i) for i in range(2)])
    more = loop.adopt(restarted(state), cores=3)
    assert loop.dealing(more).instances == 3
    assert loop.dealing(more).costs(HASHES) == pytest.approx(COSTS)
    assert loop.adopt(state, cores=2) is state


@pytest.mark.parametrize("instances", [[], [1], [0, 0], [0, 2]])
def test_every_instance_has_to_report(instances: list[int]) -> None:
    with pytest.raises(SkewlessError, match=r"work: got .*; takes the work of every instance"):
        work_of([measured(RoundRobin(), i) for i in instances])
