"""The join between batches: what it adopts, forgets and reports."""

import math
from dataclasses import replace
from typing import Any

import pytest

from skewless.engine.setting import Setting
from skewless.load.report import Report
from skewless.operators.join.bounds import Bounds
from skewless.operators.join.layout import Layout
from skewless.operators.join.operator import JoinOperator
from skewless.planning.auto import Auto
from skewless.planning.hash import Hash
from skewless.planning.lsstream import LsStream
from skewless.planning.policy import Policy
from skewless.routing.partitions import packed
from skewless.state.commit import OperatorState
from skewless.state.compaction import FANOUT
from skewless.state.naming import BatchNames
from skewless.state.segment import Segment
from skewless.state.storage import Storage
from skewless.state.watermark import Delays
from skewless.testing.segments import HeldSegments

SECOND = 1_000_000


def operator(policy: Policy | None = None, **options: Any) -> JoinOperator:
    values: dict[str, Any] = {
        "layout": Layout(1, (), (), (), hash_is_key=True),
        "bounds": Bounds(-10 * SECOND, 10 * SECOND),
        "delays": Delays({"left": 0, "right": 5 * SECOND}),
        "policy": policy or Hash(2),
        "fingerprint": {},
    }
    return JoinOperator(**{**values, **options})


def segment(name: str, side: str = "left", newest: int = 0, **fields: Any) -> Segment:
    values: dict[str, Any] = {
        "instance": 0,
        "level": 0,
        "first_batch": 0,
        "last_batch": 0,
        "rows": 3,
        "bytes": 100,
        "min_time_us": 0,
        "max_time_us": newest,
        "bulk_time_us": newest,
        "partitions": packed([0]),
        "of_partitions": 256,
        "mixed_keys": False,
        "checksum": 0,
    }
    return Segment(name, side, **{**values, **fields})


def report(instance: int, left: int | None, right: int | None, **fields: Any) -> Report:
    values: dict[str, Any] = {
        "rows": {"left": 4, "right": 2},
        "replicas": {"left": 0, "right": 0},
        "late": {"left": 1, "right": 0},
        "null_keys": {"left": 0, "right": 1},
        "bad_rows": {"left": 0, "right": 0},
        "matches": 10 + instance,
        "cpu_ms": 10.0 * (instance + 1),
        "wall_ms": 1.0,
        "peak_memory_bytes": 2**20 * (instance + 1),
        "segments": [],
        "replaced": [],
    }
    return Report(instance, max_time_us={"left": left, "right": right}, **{**values, **fields})


def test_a_new_query_has_no_watermark_and_the_policys_table() -> None:
    state = operator(Auto()).initial_state(cores=3)
    assert state.route.instances == 3
    assert state.watermark_us is None
    assert state.max_time_us == {"left": None, "right": None}
    assert state.segments == ()


def test_the_watermark_is_the_minimum_over_sides_and_instances_seen_together() -> None:
    join = operator()
    state = join.initial_state(2)
    state = join.advance(state, [report(0, 100 * SECOND, None), report(1, 90 * SECOND, None)], 0.0)
    assert state.watermark_us is None, "the right side has no data"
    state = join.advance(state, [report(0, None, 80 * SECOND), report(1, None, 20 * SECOND)], 0.0)
    assert state.max_time_us == {"left": 100 * SECOND, "right": 80 * SECOND}
    assert state.watermark_us == 75 * SECOND
    state = join.advance(state, [report(0, None, None), report(1, 5 * SECOND, 5 * SECOND)], 0.0)
    assert state.watermark_us == 75 * SECOND, "never falls"


def test_a_batch_adds_its_segments_and_takes_out_merged_and_expired_ones() -> None:
    join = operator()
    # The watermark becomes 75 s: left rows stay from 65 s on, right rows from 65 s on.
    old = (
        segment("expired", newest=65 * SECOND - 1),
        segment("at the bound", newest=65 * SECOND),
        segment("right", side="right", newest=65 * SECOND),
        segment("merged away", newest=99 * SECOND),
    )
    state = replace(join.initial_state(2), segments=old)
    after = join.advance(
        state,
        [
            report(0, 100 * SECOND, 80 * SECOND, segments=[segment("new", newest=70 * SECOND)]),
            report(
                1,
                None,
                None,
                segments=[segment("merged", newest=99 * SECOND), segment("at once", newest=1)],
                replaced=["merged away"],
            ),
        ],
        0.0,
    )
    assert [s.name for s in after.segments] == ["at the bound", "right", "new", "merged"]


class Padding(JoinOperator):
    """As an outer join: rows that leave may be due."""

    @property
    def emits(self) -> bool:
        return True


def test_what_an_emission_may_still_need_stays_one_batch_longer() -> None:
    plain = operator()
    fields = {name: getattr(plain, name) for name in JoinOperator.__dataclass_fields__}
    join = Padding(**fields)
    # The watermark becomes 75 s: left rows stay from 65 s on.
    state = replace(join.initial_state(2), segments=(segment("due", newest=65 * SECOND - 1),))
    for kept in (["due"], []):
        reports = [report(0, 100 * SECOND, 80 * SECOND), report(1, None, None)]
        state = join.advance(state, reports, 0.0)
        assert [s.name for s in state.segments] == kept


def committed(policy: Policy, cores: int = 2) -> OperatorState:
    state = operator(policy).initial_state(cores)
    return replace(state, segments=(segment("a"),), watermark_us=7)


def test_the_same_policy_keeps_the_committed_table() -> None:
    state = committed(Hash(2))
    assert operator(Hash(2)).adopt(state, cores=64) is state


@pytest.mark.parametrize(
    ("was", "now", "instances"), [(Hash(2), Hash(4), 4), (Hash(4), Auto(), 2), (Auto(), Hash(2), 2)]
)
def test_another_policy_of_as_many_partitions_moves_nothing(
    was: Policy, now: Policy, instances: int
) -> None:
    state = committed(was)
    adopted = operator(now).adopt(state, cores=2)
    assert adopted.route.table.instances == instances
    assert adopted.segments == state.segments
    assert adopted.watermark_us == 7
    assert adopted.planner["policy"] == now.describe()


def test_other_partitions_make_old_segments_visible_to_all() -> None:
    adopted = operator(LsStream(3, partitions=300)).adopt(committed(Hash(2)), cores=2)
    assert adopted.route.table.partitions == 300
    (kept,) = adopted.segments
    for instance in range(3):
        assert kept.meets(adopted.route.table.partitions_of(instance), 300)
    assert kept == segment("a")


def test_auto_follows_the_cores() -> None:
    adopted = operator(Auto()).adopt(committed(Auto(), cores=2), cores=5)
    assert adopted.route.table.instances == 5


def test_a_task_gets_the_state() -> None:
    join = operator()
    segments = tuple(segment(f"s{i}", first_batch=i) for i in range(FANOUT))
    state = replace(join.initial_state(2), segments=segments)
    names = BatchNames(8, 0, "a")
    held = HeldSegments(segments)
    setting = Setting(Storage("mock:///s"), names, held, drop_bad_rows=True)
    task = join.task(state, setting)
    assert task.setting == setting
    assert task.route == state.route


def test_progress_adds_up_the_instances() -> None:
    join = operator()
    reports = [report(1, 1, 1, replaced=["x", "y"]), report(0, 1, 1)]
    held = (segment("a"), segment("b", side="right", rows=5))
    state = replace(join.initial_state(2), segments=held, watermark_us=1_500_000)
    progress = join.progress(state, reports)
    assert progress["rows"] == {"left": 8, "right": 4}
    assert progress["late"] == {"left": 2, "right": 0}
    assert progress["nullKeys"] == {"left": 0, "right": 2}
    assert progress["matches"] == 21
    assert progress["load"]["cpuMs"] == [10.0, 20.0], "in the order of the instances"
    assert progress["load"]["matches"] == [10, 11]
    assert progress["imbalance"] == round(20 / 15, 4)
    assert progress["watermark"] == "1970-01-01T00:00:01.500000Z"
    assert progress["state"] == {
        "rows": {"left": 3, "right": 5},
        "bytes": 200,
        "segments": 2,
        "merged": 2,
    }
    assert progress["peakMemoryBytes"] == 2 * 2**20


@pytest.mark.parametrize("watermark_us", [2**62, -(2**62)])
def test_a_watermark_outside_the_calendar_is_still_shown(watermark_us: int) -> None:
    state = replace(operator().initial_state(2), watermark_us=watermark_us)
    progress = operator().progress(state, [report(0, 1, 1), report(1, 1, 1)])
    assert str(watermark_us) in progress["watermark"]


def test_idle_instances_are_balanced() -> None:
    idle = [report(i, None, None, cpu_ms=0.0) for i in range(2)]
    state = operator().initial_state(2)
    assert math.isclose(operator().progress(state, idle)["imbalance"], 1.0)
