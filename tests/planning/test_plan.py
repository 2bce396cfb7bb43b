"""Every way in which a plan can be wrong has its error, and doing nothing is always right."""

from dataclasses import replace

import pytest

from skewless.errors import SkewlessError
from skewless.load.imbalance import overload
from skewless.planning.measure import Measured, StoredTimesQueued
from skewless.planning.plan import (
    Move,
    MovesError,
    NoGainError,
    PlacementError,
    Plan,
    PlanError,
    Split,
    SplitError,
    TooManyMovesError,
    moves_between,
    stay,
    validate,
)
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import PartitionTable

from .cases import key_in, snapshot

SNAPSHOT = snapshot([[4, 4, 2], [1]])
TABLE = PartitionTable(2, (0, 1, 0, 1))
GOOD = Plan(
    table=TABLE,
    moves=(Move(1, 0, 1),),
    splits=(),
    reason="",
    imbalance_before=0.8,
    imbalance_after=0.1,
    moved_rows=4.0,
)
KEY = key_in(0, 4, load=3.5)
SPLIT = Split(KEY.hash, 0, (0, 1), 1)


def test_a_sound_plan_passes() -> None:
    validate(GOOD, SNAPSHOT, max_moves=1)


def test_doing_nothing_is_sound() -> None:
    validate(stay(SNAPSHOT, "", 0.8), SNAPSHOT, max_moves=0)


@pytest.mark.parametrize(
    ("name", "changes", "error", "says"),
    [
        (
            "a partition is missing",
            {"table": PartitionTable(2, (0, 1, 0))},
            PlacementError,
            "got 3 partitions on 2 instances; takes 4 on 2",
        ),
        (
            "an instance that does not exist",
            {"table": PartitionTable(3, (0, 2, 0, 1))},
            PlacementError,
            "on 3 instances",
        ),
        ("a move is not listed", {"moves": ()}, MovesError, "Move(partition=1"),
        ("a move is listed twice", {"moves": (Move(1, 0, 1),) * 2}, MovesError, "twice"),
        ("a wrong source", {"moves": (Move(1, 1, 1),)}, MovesError, "difference"),
        ("wrong rows", {"moved_rows": 3.0}, MovesError, "moved_rows: got 3; takes 4"),
        (
            "a member twice",
            {"splits": (replace(SPLIT, members=(1, 1)),)},
            SplitError,
            "got 1 twice",
        ),
        (
            "a member alone",
            {"splits": (replace(SPLIT, members=(1,)),)},
            SplitError,
            "got 1 members; takes at least 2",
        ),
        (
            "a member that does not exist",
            {"splits": (replace(SPLIT, members=(0, 2)),)},
            SplitError,
            "got member 2; takes instances from 0 to 1",
        ),
        (
            "another key's partition",
            {"splits": (replace(SPLIT, partition=2),)},
            SplitError,
            "got partition 2; takes 0",
        ),
        ("a key split twice", {"splits": (SPLIT, SPLIT)}, SplitError, "one split per key"),
        (
            "no such side",
            {"splits": (replace(SPLIT, lines=3),)},
            SplitError,
            "3 lines; takes a divisor of its 2 members",
        ),
    ],
)
def test_a_wrong_plan_is_refused(
    name: str, changes: dict[str, object], error: type[PlanError], says: str
) -> None:
    with pytest.raises(error) as refusal:
        validate(replace(GOOD, **changes), SNAPSHOT)  # type: ignore[arg-type]
    assert says in str(refusal.value)
    assert isinstance(refusal.value, SkewlessError)


def test_too_many_moves_are_refused() -> None:
    with pytest.raises(TooManyMovesError, match="takes at most 0 a round"):
        validate(GOOD, SNAPSHOT, max_moves=0)


@pytest.mark.parametrize(
    ("name", "assignment"),
    [("a worse one", (0, 0, 0, 0)), ("everything changes places", (1, 1, 1, 0))],
)
def test_moves_for_nothing_are_refused(name: str, assignment: tuple[int, ...]) -> None:
    table = PartitionTable(2, assignment)
    moves = moves_between(SNAPSHOT.table, table)
    rows = float(SNAPSHOT.stored[[m.partition for m in moves]].sum())
    with pytest.raises(NoGainError):
        validate(replace(GOOD, table=table, moves=moves, moved_rows=rows), SNAPSHOT)


def test_a_split_has_to_relieve_somebody_and_a_fold_need_not() -> None:
    hot = replace(SNAPSHOT, hot_keys=(KEY,))
    plan = replace(stay(hot, "", 0.0), splits=(SPLIT,))
    validate(plan, hot)
    split = replace(hot, splits=(SPLIT,))
    validate(replace(stay(split, "", 0.0), splits=()), split)
    with pytest.raises(NoGainError):
        validate(plan, SNAPSHOT)  # nothing is known of the key's load


def test_a_split_keys_load_is_shared_by_its_members() -> None:
    hot = replace(snapshot([[4, 1], [1], [0]]), hot_keys=(key_in(0, 4, load=3.0),))
    shared = Split(hot.hot_keys[0].hash, 0, (0, 1, 2), 1)
    loads = Measured().loads(hot, hot.table, (shared,))
    assert loads.tolist() == [3, 2, 1]
    assert overload(loads) == pytest.approx(0.5)


def test_each_policy_is_judged_by_its_own_measure() -> None:
    # Rows kept and rows queued lie on different partitions: by FastJoin's product of sums the
    # straggler is relieved, though the measured load of the two becomes less even.
    base = snapshot([[2, 1], [3]])
    uneven = Snapshot(base.table, base.load, base.stored * [9, 1, 1], base.queued)
    table = PartitionTable(2, (0, 1, 1))
    plan = replace(
        GOOD, table=table, moves=(Move(1, 0, 1),), moved_rows=1.0, measure=StoredTimesQueued()
    )
    validate(plan, uneven)
    with pytest.raises(NoGainError):
        validate(replace(plan, measure=Measured()), uneven)
