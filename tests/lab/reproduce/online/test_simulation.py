"""The shuffle simulation: the paper's example, a plain event-by-event check, and what is gained."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.lab.reproduce.online.references import FullKnowledge, LeastOutstanding
from skewless.lab.reproduce.online.simulation import ShuffleCourse, simulate_shuffle
from skewless.lab.reproduce.online.streams import CostlyStream, draw_stream, draw_tweets
from skewless.planning.leastwork import LeastWork
from skewless.planning.posg import Posg
from skewless.planning.roundrobin import RoundRobin

POLICIES = (RoundRobin(), LeastOutstanding(), FullKnowledge(), Posg(window=64), LeastWork())


def stream(zipf: float = 1.0, seed: int = 1, **options) -> CostlyStream:
    return draw_stream(zipf, np.random.default_rng(seed), **options)


def test_the_papers_example() -> None:
    """Tuples of 10, 1 and 10 s, a second apart: 29 s in turn, 21 s with foresight (§II)."""
    example = CostlyStream(np.array([0, 1, 0]), np.array([10e3, 1e3]))
    course = ShuffleCourse(instances=2, over_provisioning=2 / 7)
    plain = simulate_shuffle(RoundRobin(), example, course)
    assert plain.completion_ms.tolist() == pytest.approx([10e3, 1e3, 18e3])
    assert plain.instance.tolist() == [0, 1, 0]
    best = simulate_shuffle(FullKnowledge(), example, course)
    assert best.completion_ms.sum() == pytest.approx(21e3)
    assert best.instance.tolist() == [0, 1, 1]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: type(p).__name__)
@given(
    items=st.lists(st.integers(0, 9), min_size=1, max_size=200),
    instances=st.integers(1, 4),
    load=st.floats(0.5, 2.0),
)
@settings(max_examples=25)
def test_instances_serve_first_come_first_served(policy, items, instances, load) -> None:
    """Whatever the policy chose, the completion times are those of plain queues."""
    costs = np.arange(1.0, 11.0)
    factors = tuple(1.0 + 0.1 * i for i in range(instances))
    course = ShuffleCourse(instances, load, factors=factors)
    given = CostlyStream(np.array(items), costs)
    run = simulate_shuffle(policy, given, course)
    gap = given.costs.mean() * load / instances
    free = np.zeros(instances)
    for number, (item, i) in enumerate(zip(items, run.instance.tolist(), strict=True)):
        free[i] = max(free[i], number * gap) + costs[item] * factors[i]
        assert run.completion_ms[number] == pytest.approx(free[i] - number * gap)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: type(p).__name__)
def test_a_run_can_be_repeated(policy) -> None:
    runs = [simulate_shuffle(policy, stream(tuples=4_096), ShuffleCourse()) for _ in range(2)]
    assert (runs[0].instance == runs[1].instance).all()


@pytest.mark.parametrize("load", [1.0, 1.05, 1.5])
def test_equal_costs_leave_nothing_to_gain_and_nothing_is_lost(load: float) -> None:
    """Not so with POSG, which sends an instance a burst because it was idle."""
    alike = CostlyStream(np.zeros(5_000, np.int64), np.array([8.0]))
    for policy in (RoundRobin(), LeastOutstanding(), FullKnowledge(), LeastWork()):
        run = simulate_shuffle(policy, alike, ShuffleCourse(over_provisioning=load))
        assert run.mean_ms == pytest.approx(8.0)


def test_least_work_is_near_full_knowledge_and_far_from_round_robin() -> None:
    runs = {
        type(p).__name__: np.mean(
            [simulate_shuffle(p, stream(seed=s), ShuffleCourse()).mean_ms for s in range(8)]
        )
        for p in POLICIES
    }
    assert runs["RoundRobin"] / runs["LeastWork"] > 1.8
    assert runs["LeastWork"] / runs["FullKnowledge"] < 1.05
    assert runs["LeastWork"] <= runs["LeastOutstanding"]


def test_slow_instances_get_less() -> None:
    course = ShuffleCourse(2, 1.2, factors=(1.5, 0.5))
    run = simulate_shuffle(LeastWork(), stream(), course)
    counts = np.bincount(run.instance[8_192:])
    assert counts[1] / counts[0] > 1.5


def test_posg_reaches_run_and_hears_of_a_change() -> None:
    course = ShuffleCourse(
        factors=(1.05, 1.025, 1.0, 0.975, 0.95),
        factors_after=(0.9, 0.95, 1.0, 1.05, 1.1),
        change_at=40_000,
    )
    run = simulate_shuffle(Posg(), stream(tuples=80_000), course)
    assert run.run_from is not None
    assert 2 * 1024 * 5 <= run.run_from < 40_000, "two windows of every instance come first"
    assert run.renewed_at is not None
    assert run.renewed_at > 40_000
    assert 0 < run.messages < 80_000 / 100
    assert (run.instance[:5_000] == np.arange(5_000) % 5).all(), "round robin at first"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"instances": 0}, "instances"),
        ({"over_provisioning": 0.0}, "over_provisioning"),
        ({"factors": (1.0,)}, "factors"),
        ({"factors_after": (0.0,) * 5}, "factors_after"),
        ({"delay_ms": -1.0}, "delay_ms"),
    ],
)
def test_wrong_courses_are_refused(options, name: str) -> None:
    with pytest.raises(SkewlessError, match=name):
        ShuffleCourse(**options)


def test_wrong_streams_and_policies_are_refused() -> None:
    with pytest.raises(SkewlessError, match="items"):
        CostlyStream(np.empty(0, np.int64), np.ones(1))
    with pytest.raises(SkewlessError, match="cost_of_item"):
        CostlyStream(np.array([3]), np.ones(1))
    with pytest.raises(SkewlessError, match="spacing"):
        stream(spacing="odd")
    with pytest.raises(SkewlessError, match="policy"):
        simulate_shuffle("RoundRobin", stream(tuples=10), ShuffleCourse())  # type: ignore[arg-type]


def test_streams_are_drawn_as_the_paper_says() -> None:
    drawn = stream(values=64)
    values, counts = np.unique(drawn.cost_of_item, return_counts=True)
    assert values.tolist() == list(range(1, 65))
    assert set(counts.tolist()) == {4_096 // 64}
    assert stream(spacing="geometric", values=7).cost_of_item.max() == pytest.approx(64.0)
    tail = stream(spacing="pareto", values=4_096, longest_ms=1_000.0).cost_of_item
    assert tail.max() <= 1_000.0
    assert tail.max() / np.median(tail) > 100


def test_tweets_have_the_papers_most_frequent_entity() -> None:
    tweets = draw_tweets(np.random.default_rng(1), tuples=100_000)
    assert (tweets.items == 0).mean() == pytest.approx(0.065, abs=0.003)
    assert tweets.cost_of_item[0] == 5.0
    assert set(np.unique(tweets.cost_of_item)) == {1.0, 5.0, 25.0}


@pytest.mark.parametrize("load", [1.0, 1.15])
def test_with_heavy_tails_most_tuples_do_not_wait_for_the_giants(load: float) -> None:
    """Beyond full knowledge, which sends a giant where it is done first, before everybody else."""
    course = ShuffleCourse(over_provisioning=load)
    mean, late = {}, {}
    for policy in (LeastOutstanding(), FullKnowledge(), LeastWork()):
        runs = [
            simulate_shuffle(
                policy, stream(seed=s, spacing="pareto", values=4_096, longest_ms=1e3), course
            )
            for s in range(8)
        ]
        mean[type(policy)] = np.mean([run.mean_ms for run in runs])
        late[type(policy)] = np.mean([np.quantile(run.completion_ms, 0.99) for run in runs])
    assert mean[LeastOutstanding] / mean[LeastWork] > 1.2
    assert mean[FullKnowledge] / mean[LeastWork] > 1.2
    assert late[LeastOutstanding] / late[LeastWork] > 1.2
