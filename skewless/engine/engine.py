"""Carries the operators of a query from commit to commit; knows neither Spark nor any policy."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from skewless.engine.names import operator_name
from skewless.engine.operator import Operator
from skewless.engine.setting import Setting
from skewless.load.report import Report, read_reports
from skewless.state.commit import (
    KEPT_WHOLE,
    CheckpointError,
    Commit,
    CommitLog,
    OperatorState,
    check_fingerprint,
)
from skewless.state.dropped import DroppedFile
from skewless.state.faults import Faults
from skewless.state.manifest import Segments, StoredSegments
from skewless.state.naming import (
    COMMITS,
    DROPPED,
    MANIFESTS,
    REPORTS,
    SEGMENTS,
    BatchNames,
    folder_of,
    instance_of,
    own_files,
)
from skewless.state.segment import Segment
from skewless.state.storage import MissingFileError, StateError, Storage

# How many commit files stay as the record of progress, as Spark keeps its own.
_PROGRESS_KEPT = 100
_FIRST = -1


@dataclass(frozen=True)
class Part:
    """One operator's share of one try at one batch."""

    names: BatchNames
    state: OperatorState
    order: tuple[int, ...]  # the instances as their tasks should start
    task: Any


@dataclass(frozen=True)
class Settled:
    """What an operator has come to once all its tasks have reported."""

    state: OperatorState
    reports: tuple[Report, ...]


@dataclass(frozen=True)
class Attempt:
    """One try at one batch."""

    batch: int
    before: Commit
    parts: tuple[Part, ...]  # by operator
    started: float  # on the engine's clock
    is_first: bool  # of this process
    now_us: int = 0  # when it began, since 1970
    settled: dict[int, Settled] = field(default_factory=dict, compare=False)


@dataclass
class Engine:
    """The control plane of one query over one state directory.

    `upstream` says, for every operator, which of its sides take their progress in event time from
    the output of an earlier operator instead of from their rows.
    """

    storage: Storage
    operators: tuple[Operator, ...]
    cores: int
    drop_bad_rows: bool = False
    keep_dropped: bool = False  # whole, for dead letters; else a few are shown
    faults: Faults = field(default_factory=Faults)
    clock: Callable[[], float] = time.perf_counter  # seconds
    wall_clock: Callable[[], float] = time.time  # seconds since 1970
    around_ms: float = 0.0  # what a batch takes outside, as whoever drives the engine knows
    upstream: tuple[Mapping[str, int], ...] = ()
    _last: Commit | None = field(default=None, init=False, repr=False)
    _log: CommitLog = field(init=False, repr=False)
    # What the last batch took: all of it here, and what came after its operators were settled.
    own_ms: float = field(default=0.0, init=False)
    _settled_at: float = field(default=0.0, init=False, repr=False)
    _commit_ms: float = field(default=0.0, init=False, repr=False)
    # What the last commit but one needed and the last does not: the next one makes it garbage.
    _retired: set[str] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        self._log = CommitLog(self.storage)

    @property
    def _fingerprint(self) -> dict[str, Any]:
        return {"operators": [operator.fingerprint for operator in self.operators]}

    def open(self) -> None:
        """Prepares the directory and refuses one that belongs to another query."""
        for directory in (COMMITS, MANIFESTS, SEGMENTS, REPORTS):
            self.storage.make_directory(directory)
        # Named as a report, so that recovery removes what a process that dies here leaves behind.
        probe = BatchNames(0, 0, uuid.uuid4().hex)
        self.storage.make_directory(f"{REPORTS}/{probe.folder}")
        self.storage.write_bytes(f"{REPORTS}/{probe.report(0)}", b"")
        self.storage.delete_folder(f"{REPORTS}/{probe.folder}")
        committed = self._log.batches()
        if committed:
            check_fingerprint(self._log.load(committed[-1]), self._fingerprint, self.storage.uri)

    def begin(self, batch: int) -> Attempt:
        """Starts a batch from the commit before it, whatever came later."""
        started = self.clock()
        before = self._last
        is_first = before is None
        if before is None or before.batch != batch - 1:
            before = self._recover(batch)
        attempt = uuid.uuid4().hex[:12]
        parts = []
        for number, (operator, state) in enumerate(
            zip(self.operators, before.operators, strict=True)
        ):
            names = BatchNames(batch, number, attempt)
            for directory in self._written_by_tasks:
                self.storage.make_directory(f"{directory}/{names.folder}")
            segments = self._log.stored(state.segments, before.batch, number)
            state = operator.adopt(state, self.cores)
            parts.append(self._part(operator, names, state, segments))
        now_us = int(1e6 * self.wall_clock())
        return Attempt(batch, before, tuple(parts), started, is_first, now_us)

    def _part(
        self, operator: Operator, names: BatchNames, state: OperatorState, segments: Segments
    ) -> Part:
        task = operator.task(state, self._setting(names, segments))
        return Part(names, state, operator.order(state), task)

    def _setting(self, names: BatchNames, segments: Segments) -> Setting:
        return Setting(
            self.storage,
            names,
            segments,
            drop_bad_rows=self.drop_bad_rows,
            keep_dropped=self.keep_dropped,
            faults=self.faults,
        )

    def loading(self, attempt: Attempt) -> dict[int, Any]:
        """The tasks that store tables before any other task of the batch runs, by operator."""
        found = {}
        for number, (operator, part) in enumerate(zip(self.operators, attempt.parts, strict=True)):
            setting = self._setting(part.names, StoredSegments(self.storage))
            task = operator.loading(part.state, setting, attempt.now_us)
            if task is not None:
                found[number] = task
        return found

    def loaded(self, attempt: Attempt, operator: int, segments: Sequence[Segment]) -> Attempt:
        """The same try at a batch, in which an operator has a new copy of its table.

        Like all that a batch writes, the copy is real only when the batch is committed.
        """
        part = attempt.parts[operator]
        state = self.operators[operator].loaded(part.state, segments, attempt.now_us)
        stored = self._log.stored(state.segments, attempt.batch, operator)
        parts = list(attempt.parts)
        parts[operator] = self._part(self.operators[operator], part.names, state, stored)
        return replace(attempt, parts=tuple(parts))

    def missing(self, attempt: Attempt, operator: int = 0) -> list[int]:
        """The instances of an operator whose task has not run to its end."""
        part = attempt.parts[operator]
        there = self._reported(part)
        return [i for i in range(part.state.route.instances) if i not in there]

    def _reported(self, part: Part) -> set[int | None]:
        """The instances that have reported, from one listing."""
        return set(map(instance_of, self.storage.list(f"{REPORTS}/{part.names.folder}")))

    @property
    def _written_by_tasks(self) -> tuple[str, ...]:
        """Directories in which every attempt has a folder of its own."""
        return (SEGMENTS, REPORTS, *([DROPPED] if self.keep_dropped else []))

    def settle(self, attempt: Attempt, operator: int = 0) -> Settled:
        """The state of an operator after the batch, from the reports of all its tasks.

        Only once: a plan takes time. Should a task run again later, its segments are not those of
        the commit: what counts is the run that was asked for.
        """
        if operator not in attempt.settled:
            attempt.settled[operator] = self._settle(attempt, operator)
        return attempt.settled[operator]

    def _settle(self, attempt: Attempt, operator: int) -> Settled:
        part = attempt.parts[operator]
        instances = range(part.state.route.instances)
        lost = set(instances) - self._reported(part)
        if lost:
            raise StateError(
                f"{self.storage.path(REPORTS)}: instance {min(lost)} left no report of "
                f"batch {attempt.batch}; is the directory shared by all executors?"
            )
        reports = read_reports(self.storage, [part.names.report(i) for i in instances])
        given = {
            side: self.operators[above].output_watermark_us(self.settle(attempt, above).state)
            for side, above in (self.upstream[operator] if self.upstream else {}).items()
        }
        reports = [replace(r, max_time_us={**r.max_time_us, **given}) for r in reports]
        elapsed_ms = None
        if not attempt.is_first:
            elapsed_ms = 1e3 * (self.clock() - attempt.started) + self._commit_ms + self.around_ms
        state = self.operators[operator].advance(part.state, reports, elapsed_ms)
        self._settled_at = self.clock()
        return Settled(state, tuple(reports))

    def dropped(self, attempt: Attempt) -> list[tuple[int, DroppedFile]]:
        """The files of late and bad rows of a batch whose tasks have all reported, by operator."""
        return [
            (number, file)
            for number in range(len(self.operators))
            for report in self.settle(attempt, number).reports
            for file in report.dropped_files
        ]

    def emission(self, attempt: Attempt, operator: int) -> Any | None:
        """The task that gives what the batch's new watermark has made due, if anything."""
        if not self.operators[operator].emits:
            return None
        before, after = attempt.parts[operator].state, self.settle(attempt, operator).state
        stored = partial(self._log.stored, after.segments, attempt.batch, operator)
        return self.operators[operator].emission(before, after, self.storage, stored, attempt.batch)

    def finish(self, attempt: Attempt, duration_ms: dict[str, float]) -> Commit:
        """Publishes the commit of a batch whose tasks have all reported."""
        started = self.clock()
        settled = [self.settle(attempt, number) for number in range(len(self.operators))]
        progress = {
            "batchId": attempt.batch,
            "operators": [
                {
                    "name": operator_name(operator.fingerprint),
                    **operator.progress(after.state, after.reports),
                }
                for operator, after in zip(self.operators, settled, strict=True)
            ],
            "durationMs": duration_ms,
        }
        planned_ms = duration_ms.get("plan", 0.0) + 1e3 * (self.clock() - started)
        duration_ms["plan"] = round(planned_ms, 3)
        states = tuple(after.state for after in settled)
        commit = Commit(attempt.batch, self._fingerprint, states, progress)
        self.faults.reach("before_commit", attempt.batch)
        self._log.publish(commit)
        self.faults.reach("after_commit", attempt.batch)
        self._collect_garbage(attempt, commit)
        self._last = commit
        finished = self.clock()
        self._commit_ms = 1e3 * (finished - self._settled_at)
        self.own_ms = 1e3 * (finished - attempt.started)
        return commit

    def _recover(self, batch: int) -> Commit:
        """The commit to start a batch from, after a restart."""
        self._log = CommitLog(self.storage)  # of what later commits need nothing is known
        committed = self._log.batches()
        if committed and committed[-1] > batch:
            raise CheckpointError(
                f"checkpointLocation: {self.storage.uri} has committed batch {committed[-1]}, but "
                f"Spark starts again at batch {batch}; its offset log was removed. Remove the "
                "whole checkpoint, or restore the part that is missing"
            )
        if batch == 0:
            states = tuple(operator.initial_state(self.cores) for operator in self.operators)
            before = Commit(_FIRST, self._fingerprint, states)
        else:
            before = self._log.load(batch - 1)
            check_fingerprint(before, self._fingerprint, self.storage.uri)
        kept = before.segment_names()
        for older in range(batch - KEPT_WHOLE, batch - 1):
            if older in committed and self._is_whole(older):
                kept |= self._log.load(older).segment_names()
        folders = set(map(folder_of, kept))
        for folder in own_files(self.storage, SEGMENTS):
            if folder in folders:
                self._delete_all_but(kept, folder)
            else:
                self.storage.delete_folder(f"{SEGMENTS}/{folder}")
        for directory in (REPORTS, DROPPED):
            for folder in own_files(self.storage, directory):
                self.storage.delete_folder(f"{directory}/{folder}")
        for name, file in own_files(self.storage, COMMITS).items():
            if file.is_temporary:
                self.storage.delete(f"{COMMITS}/{name}")
        for name in own_files(self.storage, MANIFESTS):
            if not self._log.describes(name):
                self.storage.delete(f"{MANIFESTS}/{name}")
        self._retired = kept - before.segment_names()
        return before

    def _is_whole(self, batch: int) -> bool:
        """Whether what a commit needs is still described.

        It is not where the batch to be replayed had a commit before, and its garbage was collected.
        """
        try:
            CommitLog(self.storage).load(batch)
        except MissingFileError:
            return False
        return True

    def _delete_all_but(self, kept: set[str], folder: str) -> None:
        """Deletes the files of a folder of segments that no commit needs.

        A task run that was superseded leaves some: a retry, a second action.
        """
        listed = self.storage.list(f"{SEGMENTS}/{folder}")
        gone = [name for name in listed if name not in kept and folder_of(name) == folder]
        self.storage.delete_all([f"{SEGMENTS}/{folder}/{name}" for name in gone])

    def _collect_garbage(self, attempt: Attempt, commit: Commit) -> None:
        """Deletes what neither this commit nor the one before it needs.

        The work grows with what has changed, not with what is stored.
        """
        now, before = commit.segment_names(), attempt.before.segment_names()
        gone = self._retired - now
        self._retired = before - now
        needed = set(map(folder_of, now | before))
        for folder in set(map(folder_of, gone)) - needed:
            self.storage.delete_folder(f"{SEGMENTS}/{folder}")
        single = [(folder_of(name), name) for name in gone if folder_of(name) in needed]
        self.storage.delete_all([f"{SEGMENTS}/{folder}/{name}" for folder, name in single])
        empty = self._log.forget(gone)
        self.storage.delete_all([f"{MANIFESTS}/{name}" for name in sorted(empty)])
        for part in attempt.parts:
            for directory in set(self._written_by_tasks) - {SEGMENTS}:
                self.storage.delete_folder(f"{directory}/{part.names.folder}")
            if part.names.folder in needed:
                self._delete_all_but(now, part.names.folder)
            else:
                self.storage.delete_folder(f"{SEGMENTS}/{part.names.folder}")
        self._log.delete(attempt.batch - _PROGRESS_KEPT)
