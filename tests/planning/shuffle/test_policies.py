"""The shuffle policies on micro-batches: options, what they learn, how they deal."""

import json

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.planning.leastwork import LeastWork
from skewless.planning.posg import Posg
from skewless.planning.roundrobin import RoundRobin
from skewless.planning.shuffle.dealing import Dealing
from skewless.planning.shuffle.snapshot import InstanceWork, WorkSnapshot

HASHES = np.arange(10, dtype=np.uint64)
POLICIES = [RoundRobin(2), LeastWork(2), Posg(2, window=100)]


def work(policy, instance: int, costs, slowness: float = 1.0, rows: int = 200) -> InstanceWork:
    """What an instance reports that has seen every key equally often."""
    hashes = np.resize(HASHES, rows)
    times = np.resize(np.asarray(costs, np.float64), rows) * slowness
    blank = policy.blank()
    sketch = None if blank is None else blank.update(hashes, times)
    estimated = float(np.resize(np.asarray(costs, np.float64), rows).sum())
    return InstanceWork(instance, rows, float(times.sum()), estimated, sketch)


def after(policy, rounds, memory=None):
    """The policy's memory after rounds of work, through JSON as a commit does it."""
    memory = {} if memory is None else memory
    for costs in rounds:
        memory = learned(policy, memory, [work(policy, i, costs) for i in range(2)])
    return memory


def learned(policy, memory, done):
    """The memory after one more batch; the route that was decided is the one it stands for."""
    decision = policy.plan(WorkSnapshot(tuple(done)), memory)
    assert decision.reason
    again = json.loads(json.dumps(decision.memory))
    assert again == decision.memory
    rebuilt = policy.route(again, len(done))
    assert same(decision.route, rebuilt)
    return again


def same(one: Dealing, other: Dealing) -> bool:
    """Whether two dealings send every row to the same instance, for the same reasons."""
    return (one.instances, one.slowness) == (other.instances, other.slowness) and [
        s.to_json() for s in one.sketches
    ] == [s.to_json() for s in other.sketches]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_new_query_deals_in_turn(policy) -> None:
    dealing = policy.start(cores=1)
    assert dealing == policy.route({}, 2) == Dealing(2)
    assert dealing.assign(HASHES, np.zeros(2), 1)[0].tolist() == [1, 0] * 5


@pytest.mark.parametrize("policy", [RoundRobin, LeastWork, Posg])
def test_one_instance_per_core_unless_said_otherwise(policy) -> None:
    assert policy().start(8).instances == 8
    assert policy(instances=3).start(8).instances == 3
    assert policy().describe()["policy"] == policy.__name__
    with pytest.raises(SkewlessError, match="instances"):
        policy(instances=0)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: LeastWork(decay=2.0), "decay"),
        (lambda: LeastWork(heaviest=-1), "heaviest"),
        (lambda: LeastWork(epsilon=0), "epsilon"),
        (lambda: LeastWork(epsilon=1e-8), "epsilon: got 1e-08"),
        (lambda: LeastWork(window=0), "window"),
        (lambda: Posg(delta=1e-30), "delta: got 1e-30"),
        (lambda: Posg(mu=0), "mu"),
        (lambda: Posg(delta=1.0), "delta"),
        (lambda: Posg(window=0), "window"),
        (lambda: Dealing(3, (LeastWork().blank(),) * 2), "sketches"),
        (lambda: Dealing(3, slowness=(1.0,)), "slowness"),
    ],
)
def test_wrong_options_are_refused_at_once(make, name: str) -> None:
    with pytest.raises(SkewlessError, match=name):
        make()


def test_least_work_learns_costs_in_one_batch() -> None:
    costs = [1.0] * 9 + [100.0]
    dealing = LeastWork(2).route(after(LeastWork(2), [costs]), 2)
    assert dealing.costs(HASHES) == pytest.approx(costs)
    assigned, loads = dealing.assign(HASHES, np.zeros(2), 0)
    assert (assigned == assigned[9]).sum() == 1, "the costly row is alone"
    assert sorted(loads.tolist()) == [9.0, 100.0]


def test_costs_that_change_are_learned_again() -> None:
    policy = LeastWork(2)
    memory = after(policy, [[1.0] * 9 + [100.0]] * 20)
    rounds = 0
    while policy.route(memory, 2).costs(HASHES)[9] > 5.0:
        memory = after(policy, [[100.0] + [1.0] * 9], memory)
        rounds += 1
    assert rounds <= 6, "each batch outweighs all before it together"
    assert policy.route(memory, 2).costs(HASHES)[0] > 90.0


def test_an_empty_batch_forgets_nothing() -> None:
    policy = LeastWork(2)
    memory = after(policy, [[5.0] * 10])
    idle = [InstanceWork(i, 0, 0.0, 0.0, policy.blank()) for i in range(2)]
    assert learned(policy, memory, idle)["sketch"] == memory["sketch"]


def test_a_slow_instance_is_noticed_and_given_less() -> None:
    policy = LeastWork(2)
    memory = after(policy, [[1.0] * 10])
    for _ in range(8):
        done = [work(policy, 0, [1.0] * 10, slowness=2.0), work(policy, 1, [1.0] * 10)]
        memory = learned(policy, memory, done)
    dealing = policy.route(memory, 2)
    assert dealing.slowness[0] / dealing.slowness[1] == pytest.approx(2.0, rel=0.05)
    assigned, _ = dealing.assign(np.resize(HASHES, 300), np.zeros(2), 0)
    assert np.bincount(assigned).tolist() == pytest.approx([100, 200], abs=3)


def test_small_differences_of_speed_are_noise() -> None:
    policy = LeastWork(2)
    for slowness, is_noise in ((1.08, True), (1.5, False)):
        memory = after(policy, [[1.0] * 10])
        for _ in range(6):
            done = [work(policy, 0, [1.0], slowness), work(policy, 1, [1.0])]
            memory = learned(policy, memory, done)
        assert (policy.route(memory, 2).slowness == ()) is is_noise


def test_speeds_that_change_from_batch_to_batch_are_noise() -> None:
    """As when costs of keys that were never seen make now this instance late, now that one."""
    policy = LeastWork(2)
    memory = after(policy, [[1.0] * 10])
    for batch in range(12):
        late = batch * batch % 3 % 2  # 0, 1, 1, 0, 1, 1, …
        done = [work(policy, i, [1.0], 1.5 if i == late else 1.0) for i in range(2)]
        memory = learned(policy, memory, done)
        assert policy.route(memory, 2).slowness == (), f"batch {batch}"
    assert max(memory["slowness"]) > 1.05, "smoothing alone would not have done"


def test_a_slow_instance_is_believed_within_four_batches() -> None:
    policy = LeastWork(4)
    memory = {}
    for slowness in [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]:
        speeds = [slowness, 1.0, 1.0, 1.0]
        memory = learned(policy, memory, [work(policy, i, [1.0], s) for i, s in enumerate(speeds)])
    slow, *others = policy.route(memory, 4).slowness
    assert slow > 1.3
    assert max(others) <= 1.0


def test_least_work_survives_another_number_of_instances() -> None:
    policy = LeastWork()
    memory = after(policy, [[1.0] * 9 + [100.0]])
    assert policy.route(memory, 5).costs(HASHES)[9] == pytest.approx(100.0)
    later = learned(policy, memory, [work(policy, i, [1.0] * 10) for i in range(5)])
    assert len(later["slowness"]) == 5


def test_posg_waits_until_its_sketches_are_stable() -> None:
    policy = Posg(2, window=100)
    costs = [1.0] * 9 + [100.0]
    assert not policy.route(after(policy, [costs]), 2).sketches, "one snapshot, no second yet"
    dealing = policy.route(after(policy, [costs, costs]), 2)
    assert len(dealing.sketches) == 2
    assert dealing.costs(HASHES).shape == (2, 10)
    changing = policy.route(after(policy, [[1.0], [3.0], [9.0], [27.0]]), 2)
    assert not changing.sketches


def test_posg_gathers_small_batches_into_a_window() -> None:
    policy = Posg(2, window=500)
    memory = after(policy, [[2.0] * 10] * 5)  # 1,000 rows each, in fives
    assert not policy.route(memory, 2).sketches
    assert policy.route(after(policy, [[2.0] * 10], memory), 2).sketches


def test_posg_begins_anew_with_another_number_of_instances() -> None:
    policy = Posg(window=100)
    memory = after(policy, [[1.0] * 10] * 2)
    assert not policy.route(memory, 3).sketches
    later = learned(policy, memory, [work(policy, i, [1.0] * 10) for i in range(3)])
    assert len(later["instances"]) == 3
