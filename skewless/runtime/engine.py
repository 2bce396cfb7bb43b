"""Carries an operator from one commit to the next; knows neither Spark nor any policy."""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from skewless.load import report as reports_of
from skewless.load.report import Report, read_report
from skewless.state import commit as commits_of
from skewless.state import segment as segments_of
from skewless.state.commit import (
    CheckpointError,
    Commit,
    CommitLog,
    OperatorState,
    check_fingerprint,
)
from skewless.state.faults import Faults
from skewless.state.naming import BatchNames, batch_of
from skewless.state.storage import StateError, Storage, is_temporary

# How many commit files stay as the record of progress, as Spark keeps its own.
_PROGRESS_KEPT = 100
_FIRST = -1


class Operator(Protocol):
    """What the engine asks of an operator."""

    @property
    def fingerprint(self) -> dict[str, Any]: ...
    def initial_state(self, cores: int) -> OperatorState: ...
    def adopt(self, state: OperatorState, cores: int) -> OperatorState: ...
    def order(self, state: OperatorState) -> tuple[int, ...]: ...
    def task(
        self,
        state: OperatorState,
        storage: Storage,
        names: BatchNames,
        *,
        drop_bad_rows: bool,
        faults: Faults,
    ) -> Any: ...
    def advance(self, state: OperatorState, reports: Sequence[Report]) -> OperatorState: ...
    def progress(self, state: OperatorState, reports: Sequence[Report]) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Attempt:
    """One try at one batch."""

    batch: int
    names: BatchNames
    before: Commit
    state: OperatorState
    order: tuple[int, ...]  # the instances as their tasks should start
    task: Any


@dataclass
class Engine:
    """The control plane of one query over one state directory."""

    storage: Storage
    operator: Operator
    cores: int
    drop_bad_rows: bool = False
    faults: Faults = field(default_factory=Faults)
    _last: Commit | None = field(default=None, init=False, repr=False)

    @property
    def _log(self) -> CommitLog:
        return CommitLog(self.storage)

    @property
    def _fingerprint(self) -> dict[str, Any]:
        return {"operators": [self.operator.fingerprint]}

    def open(self) -> None:
        """Prepares the directory and refuses one that belongs to another query."""
        for directory in (commits_of.DIRECTORY, segments_of.DIRECTORY, reports_of.DIRECTORY):
            self.storage.make_directory(directory)
        probe = f"{reports_of.DIRECTORY}/writable-{uuid.uuid4().hex}"
        self.storage.write_bytes(probe, b"")
        self.storage.delete(probe)
        committed = self._log.batches()
        if committed:
            check_fingerprint(self._log.load(committed[-1]), self._fingerprint, self.storage.uri)

    def begin(self, batch: int) -> Attempt:
        """Starts a batch from the commit before it, whatever came later."""
        before = self._last
        if before is None or before.batch != batch - 1:
            before = self._recover(batch)
        names = BatchNames(batch, operator=0, attempt=uuid.uuid4().hex[:12])
        state = self.operator.adopt(before.operators[0], self.cores)
        task = self.operator.task(
            state,
            self.storage,
            names,
            drop_bad_rows=self.drop_bad_rows,
            faults=self.faults,
        )
        return Attempt(batch, names, before, state, self.operator.order(state), task)

    def missing(self, attempt: Attempt) -> list[int]:
        """The instances whose task has not run to its end."""
        instances = range(attempt.state.route.instances)
        directory = reports_of.DIRECTORY
        return [
            i
            for i in instances
            if not self.storage.exists(f"{directory}/{attempt.names.report(i)}")
        ]

    def finish(self, attempt: Attempt, duration_ms: dict[str, float]) -> Commit:
        """Publishes the commit of a batch whose tasks have all reported."""
        started = time.perf_counter()
        instances = range(attempt.state.route.instances)
        found = [read_report(self.storage, attempt.names.report(i)) for i in instances]
        reports = [r for r in found if r is not None]
        if len(reports) < len(found):
            lost = found.index(None)
            raise StateError(
                f"{self.storage.path(reports_of.DIRECTORY)}: instance {lost} left no report of "
                f"batch {attempt.batch}; is the directory shared by all executors?"
            )
        state = self.operator.advance(attempt.state, reports)
        progress = {
            "batchId": attempt.batch,
            "operators": [self.operator.progress(state, reports)],
            "durationMs": duration_ms,
        }
        duration_ms["plan"] = round(1e3 * (time.perf_counter() - started), 3)
        commit = Commit(attempt.batch, self._fingerprint, (state,), progress)
        self.faults.reach("before_commit", attempt.batch)
        self._log.publish(commit)
        self.faults.reach("after_commit", attempt.batch)
        self._collect_garbage(attempt, commit, reports)
        self._last = commit
        return commit

    def _recover(self, batch: int) -> Commit:
        """The commit to start a batch from, after a restart."""
        committed = self._log.batches()
        if committed and committed[-1] > batch:
            raise CheckpointError(
                f"checkpointLocation: {self.storage.uri} has committed batch {committed[-1]}, but "
                f"Spark starts again at batch {batch}; its offset log was removed. Remove the "
                "whole checkpoint, or restore the part that is missing"
            )
        if batch == 0:
            before = Commit(_FIRST, self._fingerprint, (self.operator.initial_state(self.cores),))
        else:
            before = self._log.load(batch - 1)
            check_fingerprint(before, self._fingerprint, self.storage.uri)
        kept = before.segment_names()
        for older in range(batch - commits_of.KEPT_WHOLE, batch - 1):
            if older in committed:
                kept |= self._log.load(older).segment_names()
        for name in self.storage.list(segments_of.DIRECTORY):
            if name not in kept:
                self.storage.delete(f"{segments_of.DIRECTORY}/{name}")
        for name in self.storage.list(reports_of.DIRECTORY):
            self.storage.delete(f"{reports_of.DIRECTORY}/{name}")
        for name in self.storage.list(commits_of.DIRECTORY):
            if is_temporary(name):
                self.storage.delete(f"{commits_of.DIRECTORY}/{name}")
        return before

    def _collect_garbage(self, attempt: Attempt, commit: Commit, reports: Sequence[Report]) -> None:
        """Deletes what neither this commit nor the one before it needs."""
        kept = commit.segment_names() | attempt.before.segment_names()
        for name in self.storage.list(segments_of.DIRECTORY):
            # Also what runs of a task have left that were not the last: a retry, a second action.
            if name not in kept and batch_of(name) <= attempt.batch:
                self.storage.delete(f"{segments_of.DIRECTORY}/{name}")
        for report in reports:
            name = attempt.names.report(report.instance)
            self.storage.delete(f"{reports_of.DIRECTORY}/{name}")
        self._log.delete(attempt.batch - _PROGRESS_KEPT)
