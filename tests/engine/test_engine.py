"""The engine without Spark: recovery, garbage collection, refusals; its operator only counts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.engine.engine import Attempt, Engine
from skewless.engine.setting import Setting
from skewless.load.report import Report, write_report
from skewless.routing.partitions import packed, round_robin
from skewless.routing.table import TableRoute
from skewless.state import manifest
from skewless.state.commit import CheckpointError, Commit, CommitLog, OperatorState
from skewless.state.faults import Fault, Faults, SimulatedKill
from skewless.state.naming import own_files
from skewless.state.segment import Segment
from skewless.state.storage import StateError, Storage

INSTANCES = 2
KEPT_BATCHES = 3  # the segments of so many batches are live
NO_SIDES: dict[str, int] = {"left": 0, "right": 0}


@dataclass
class Counting:
    """Remembers which batches it has seen, and holds the segments of the last few."""

    fingerprint: dict[str, Any] = field(default_factory=lambda: {"operator": "counting"})
    adopted_cores: list[int] = field(default_factory=list)
    emits: bool = False
    waits: bool = False
    sheds: bool = False
    elapsed_ms: list[float | None] = field(default_factory=list)

    def initial_state(self, cores: int) -> OperatorState:
        return OperatorState(
            route=TableRoute(round_robin(INSTANCES, INSTANCES)),
            max_time_us={"left": None, "right": None},
            watermark_us=None,
            planner={"seen": []},
        )

    def order(self, state: OperatorState) -> tuple[int, ...]:
        return tuple(range(INSTANCES))

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        self.adopted_cores.append(cores)
        return state

    def task(self, state: OperatorState, setting: Setting) -> Any:
        return {"drop_bad_rows": setting.drop_bad_rows, "segments": list(setting.segments)}

    def advance(
        self, state: OperatorState, reports: Sequence[Report], elapsed_ms: float | None
    ) -> OperatorState:
        self.elapsed_ms.append(elapsed_ms)
        gone = {name for r in reports for name in r.replaced}
        segments = [s for s in state.segments if s.name not in gone]
        segments += [s for r in reports for s in r.segments]
        batch = max(s.last_batch for s in segments)
        return replace(
            state,
            segments=tuple(s for s in segments if s.last_batch > batch - KEPT_BATCHES),
            planner={"seen": [*state.planner["seen"], batch]},
        )

    def progress(self, state: OperatorState, reports: Sequence[Report]) -> dict[str, Any]:
        return {"tasks": len(reports)}


def segment_of(attempt: Attempt, instance: int, part: str, *, live: bool = True) -> Segment:
    return Segment(
        name=attempt.parts[0].names.segment(instance, "left", part),
        side="left",
        instance=instance,
        level=0,
        first_batch=attempt.batch if live else attempt.batch - KEPT_BATCHES,
        last_batch=attempt.batch if live else attempt.batch - KEPT_BATCHES,
        rows=1,
        bytes=1,
        min_time_us=0,
        max_time_us=0,
        bulk_time_us=0,
        partitions=packed([0]),
        of_partitions=4,
        mixed_keys=False,
        checksum=0,
    )


def run_task(storage: Storage, attempt: Attempt, instance: int) -> None:
    """Reads every live segment, writes new ones and a report, as a real task does."""
    for stored in attempt.parts[0].task["segments"]:
        storage.read_bytes(stored.path)
    written = [segment_of(attempt, instance, "0000")]
    # One that is expired as soon as it is written, and in every fourth batch a merge.
    written.append(segment_of(attempt, instance, "0001", live=False))
    own = [s for s in attempt.parts[0].task["segments"] if s.instance == instance]
    merged = own[:2] if attempt.batch % 4 == 3 and len(own) >= 2 else []
    if merged:
        whole = segment_of(attempt, instance, "m000")
        last = max(s.last_batch for s in merged)
        written.append(replace(whole, first_batch=merged[0].first_batch, last_batch=last))
    for segment in written:
        storage.write_bytes(segment.path, b"rows")
    report = Report(
        instance=instance,
        rows=NO_SIDES,
        replicas=NO_SIDES,
        late=NO_SIDES,
        null_keys=NO_SIDES,
        bad_rows=NO_SIDES,
        max_time_us={"left": attempt.batch, "right": None},
        matches=0,
        cpu_ms=0,
        wall_ms=0,
        peak_memory_bytes=0,
        segments=written,
        replaced=[s.name for s in merged],
    )
    write_report(storage, attempt.parts[0].names.report(instance), report)


def step(engine: Engine, batch: int) -> Commit:
    attempt = engine.begin(batch)
    for instance in range(INSTANCES):
        run_task(engine.storage, attempt, instance)
        engine.faults.reach("in_task", batch)
    return engine.finish(attempt, {})


def test_a_late_twin_of_a_task_leaves_nothing_behind(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    engine = opened(storage)
    attempt = engine.begin(0)
    for instance in range(INSTANCES):
        run_task(storage, attempt, instance)
    engine.finish(attempt, {})
    on_disk = segments_on_disk(storage)
    with pytest.raises(StateError, match="reports"):
        run_task(storage, attempt, 1)
    assert storage.folders("reports") == set()
    step(engine, 1)
    assert on_disk <= segments_on_disk(storage)


def opened(storage: Storage, *faults: Fault, **options: Any) -> Engine:
    """An engine in a process of its own, which has read nothing yet."""
    manifest._tables.clear()
    engine = Engine(storage, (options.pop("operator", Counting()),), cores=4, **options)
    engine.faults = Faults(faults)
    engine.open()
    return engine


def run(storage: Storage, batches: int, first: int = 0) -> Commit:
    """Batches in one process."""
    engine = opened(storage)
    commit = step(engine, first)
    for batch in range(first + 1, first + batches):
        commit = step(engine, batch)
    return commit


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "state"))


def segments_on_disk(storage: Storage) -> set[str]:
    folders = own_files(storage, "segments")
    return {name for folder in folders for name in storage.list(f"segments/{folder}")}


def needed(storage: Storage, batch: int) -> set[str]:
    return CommitLog(storage).load(batch).segment_names() if batch >= 0 else set()


def manifests_on_disk(storage: Storage) -> set[str]:
    return set(storage.list("manifests"))


def manifests_of(storage: Storage, *batches: int) -> set[str]:
    records = [CommitLog(storage).record(batch) for batch in batches if batch >= 0]
    return {
        name
        for record in records
        if record is not None
        for operator in record["operators"]
        for name, *_ in operator["manifests"]
    }


def seen(commit: Commit) -> list[int]:
    batches: list[int] = commit.operators[0].planner["seen"]
    return batches


@pytest.mark.parametrize("point", ["in_task", "before_commit", "after_commit"])
@pytest.mark.parametrize("batch", [0, 1, 2, 5])
def test_a_killed_batch_is_replayed_from_the_commit_before_it(
    storage: Storage, point: str, batch: int
) -> None:
    engine = opened(storage, Fault(point, batch))
    for earlier in range(batch):
        step(engine, earlier)
    with pytest.raises(SimulatedKill):
        step(engine, batch)
    committed = CommitLog(storage).batches()
    assert committed == list(range(batch + 1 if point == "after_commit" else batch))
    # The next process, which Spark tells to do the batch again.
    commit = run(storage, 2, first=batch)
    assert seen(commit) == list(range(batch + 2))
    assert segments_on_disk(storage) == needed(storage, batch) | needed(storage, batch + 1)


@pytest.mark.parametrize("batch", range(8))
def test_a_batch_is_replayed_although_its_garbage_was_collected(
    storage: Storage, batch: int
) -> None:
    """It died after its commit was done, before Spark knew of it."""
    run(storage, batch + 1)
    commit = run(storage, 2, first=batch)
    assert seen(commit) == list(range(batch + 2))
    assert segments_on_disk(storage) == needed(storage, batch) | needed(storage, batch + 1)
    assert manifests_on_disk(storage) == manifests_of(storage, batch, batch + 1)


@settings(max_examples=50)
@given(
    deaths=st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["in_task", "before_commit", "after_commit"])),
        max_size=10,
    )
)
def test_whenever_it_dies_what_the_last_two_commits_need_is_there_and_nothing_else(
    deaths: list[tuple[int, str]],
) -> None:
    storage = Storage("mock:///state")
    pending = [Fault(point, batch) for batch, point in deaths]
    engine = opened(storage, *pending)
    batch = 0
    while batch < 10:
        try:
            commit = step(engine, batch)
        except SimulatedKill:
            struck = next(f for f in pending if f.batch == batch)
            pending = [f for f in pending if f is not struck and f.batch >= batch]
            # Whatever was going on: the batch can be done again.
            assert needed(storage, batch - 1) <= segments_on_disk(storage)
            engine = opened(storage, *pending)
            continue
        assert seen(commit) == list(range(batch + 1))
        assert segments_on_disk(storage) == needed(storage, batch) | needed(storage, batch - 1)
        assert storage.folders("reports") == set()
        assert manifests_on_disk(storage) == manifests_of(storage, batch, batch - 1)
        batch += 1
    live = CommitLog(storage).load(9).operators[0].segments
    assert {s.last_batch for s in live} <= {7, 8, 9}


def test_without_deaths_segments_go_one_commit_after_they_were_last_needed(
    storage: Storage,
) -> None:
    engine = opened(storage)
    for batch in range(12):
        before = segments_on_disk(storage)
        step(engine, batch)
        gone = before - segments_on_disk(storage)
        assert not gone & needed(storage, batch)
        assert not gone & needed(storage, batch - 1)
        assert segments_on_disk(storage) == needed(storage, batch) | needed(storage, batch - 1)
    assert len(segments_on_disk(storage)) >= KEPT_BATCHES * INSTANCES


def test_orphans_are_removed_on_recovery(storage: Storage) -> None:
    run(storage, 6)
    orphans = [
        "segments/b000000000006-o0-dead/b000000000006-o0-dead-i00000-left-0000.arrow",
        "segments/b000000000006-o0-dead/b000000000006-o0-dead-i00000-left-0000.arrow.tmp-0123",
        "reports/b000000000006-o0-dead/i00000.json",
        "reports/b000000000006-o0-dead/i00001.json.tmp-0123",
        "manifests/b000000000006-o0-dead.arrow",
        "manifests/b000000000006-o0-dead.arrow.tmp-0123",
        "commits/000000000006.json.tmp-0123",
    ]
    for name in orphans:
        storage.make_directory(name.rpartition("/")[0])
        storage.write_bytes(name, b"half")
    opened(storage).begin(6)
    assert [name for name in orphans if storage.exists(name)] == []
    assert not needed(storage, 4) <= needed(storage, 5)
    assert segments_on_disk(storage) == needed(storage, 5) | needed(storage, 4)
    assert CommitLog(storage).batches() == [0, 1, 2, 3, 4, 5]


STRAYS = [
    f"{folder}/{name}"
    for folder in ("commits", "manifests", "segments", "reports")
    for name in (".nfs000000000000abcd00000001", ".DS_Store", "foo.json", "b1.arrow")
]


def test_files_of_others_are_neither_read_nor_deleted(storage: Storage) -> None:
    engine = opened(storage)
    for name in STRAYS:
        storage.write_bytes(name, b"not ours")
    storage.make_directory("segments/notes")
    storage.make_directory("reports/notes")
    for batch in range(6):
        commit = step(engine, batch)
    assert seen(commit) == list(range(6))
    commit = run(storage, 2, first=6)  # after a restart, too
    assert seen(commit) == list(range(8))
    assert all(storage.read_bytes(name) == b"not ours" for name in STRAYS)
    assert "notes" in storage.folders("segments")
    assert storage.folders("reports") == {"notes"}
    assert segments_on_disk(storage) == needed(storage, 7) | needed(storage, 6)


def test_a_task_of_a_dead_driver_does_not_meet_the_living_one(storage: Storage) -> None:
    run(storage, 2)
    dead = opened(storage).begin(2)
    living_engine = opened(storage)
    living = living_engine.begin(2)
    assert dead.parts[0].names != living.parts[0].names
    for instance in range(INSTANCES):
        with pytest.raises(StateError):  # its folder has gone
            run_task(storage, dead, instance)
    assert living_engine.missing(living) == [0, 1]
    run_task(storage, living, 1)
    assert living_engine.missing(living) == [0]
    run_task(storage, living, 0)
    assert living_engine.missing(living) == []
    commit = living_engine.finish(living, {})
    assert not any(dead.parts[0].names.attempt in name for name in commit.segment_names())
    # What the dead one wrote meanwhile goes at the next recovery.
    opened(storage).begin(3)
    assert segments_on_disk(storage) == needed(storage, 2) | needed(storage, 1)


def test_a_lost_report_commits_nothing(storage: Storage) -> None:
    engine = opened(storage)
    attempt = engine.begin(0)
    run_task(storage, attempt, 0)
    with pytest.raises(StateError) as failure:
        engine.finish(attempt, {})
    assert str(failure.value).startswith(storage.path("reports"))
    assert "instance 1 left no report of batch 0" in str(failure.value)
    assert CommitLog(storage).batches() == []


def test_a_retried_task_counts_once(storage: Storage) -> None:
    engine = opened(storage)
    attempt = engine.begin(0)
    for instance in (0, 1, 0):
        run_task(storage, attempt, instance)
    commit = engine.finish(attempt, {})
    assert len(commit.operators[0].segments) == INSTANCES
    assert commit.progress["operators"] == [{"name": "counting", "tasks": INSTANCES}]


@pytest.mark.parametrize("batch", [0, 1, 2])
def test_a_removed_offset_log_is_refused(storage: Storage, batch: int) -> None:
    run(storage, 4)
    before = segments_on_disk(storage)
    with pytest.raises(CheckpointError) as refusal:
        opened(storage).begin(batch)
    assert f"has committed batch 3, but Spark starts again at batch {batch}" in str(refusal.value)
    assert segments_on_disk(storage) == before


@pytest.mark.parametrize("first", [1, 7])
def test_a_removed_state_directory_is_refused(storage: Storage, first: int) -> None:
    with pytest.raises(CheckpointError, match=f"the commit of batch {first - 1} is missing"):
        opened(storage).begin(first)


def test_a_gap_is_refused_in_a_running_engine_too(storage: Storage) -> None:
    engine = opened(storage)
    step(engine, 0)
    with pytest.raises(CheckpointError, match="the commit of batch 4 is missing"):
        engine.begin(5)


def test_another_query_is_refused_before_anything_is_touched(storage: Storage) -> None:
    run(storage, 2)
    before = segments_on_disk(storage)
    with pytest.raises(CheckpointError, match='operator was "counting" and is now "other"'):
        opened(storage, operator=Counting({"operator": "other"}))
    assert segments_on_disk(storage) == before


def test_old_commits_stay_as_the_record_of_progress_for_a_hundred_batches(
    storage: Storage,
) -> None:
    run(storage, 103)
    assert CommitLog(storage).batches() == list(range(3, 103))


def test_a_running_engine_reads_no_commit(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = opened(storage)
    step(engine, 0)

    def refuse(*_: object) -> Commit:
        raise AssertionError("the last commit is in memory")

    monkeypatch.setattr(CommitLog, "load", refuse)
    assert seen(step(engine, 1)) == [0, 1]


def test_options_reach_the_operator(storage: Storage) -> None:
    operator = Counting()
    engine = opened(storage, operator=operator, drop_bad_rows=True)
    assert engine.begin(0).parts[0].task["drop_bad_rows"] is True
    assert operator.adopted_cores == [4]


def test_progress_is_part_of_the_commit(storage: Storage) -> None:
    engine = opened(storage)
    attempt = engine.begin(0)
    for instance in range(INSTANCES):
        run_task(storage, attempt, instance)
    engine.finish(attempt, {"sink": 12.5})
    record = CommitLog(storage).record(0)
    assert record is not None
    progress = record["progress"]
    assert progress["batchId"] == 0
    assert progress["operators"] == [{"name": "counting", "tasks": INSTANCES}]
    assert progress["durationMs"]["sink"] == 12.5
    assert progress["durationMs"]["plan"] >= 0


def test_opening_leaves_nothing_behind(storage: Storage) -> None:
    opened(storage)
    opened(storage)
    for directory in ("commits", "manifests", "segments", "reports"):
        assert storage.list(directory) == []
        assert storage.folders(directory) == set()


def test_operators_are_told_how_long_the_batch_takes(storage: Storage) -> None:
    """From its start on, with what the last commit took and what the driver of the engine adds.

    The first batch of a process does much that later ones need not do again.
    """
    now = 0.0

    def clock() -> float:
        return now

    operator = Counting()
    engine = opened(storage, operator=operator, clock=clock)
    for number in range(2):
        attempt = engine.begin(number)
        now += 2.0
        for instance in range(INSTANCES):
            run_task(storage, attempt, instance)
        engine.around_ms = 30.0
        engine.finish(attempt, {})
    assert operator.elapsed_ms == [None, 2_030.0]
    assert engine.own_ms == 2_000.0
