"""Commits: one small file per batch that says everything needed to go on after it."""

import json
from dataclasses import dataclass, field
from typing import Any

from skewless.errors import SkewlessError
from skewless.routing.kinds import route_from_json
from skewless.routing.route import Route
from skewless.state.naming import COMMITS, commit_name, own_files
from skewless.state.sealed import DamagedError, UnsealedError, seal, unseal
from skewless.state.segment import Segment
from skewless.state.storage import MissingFileError, Storage

FORMAT = 4
# Replaying a batch needs the commit before it, so two commits are kept whole. Older commit files
# stay for a while as the record of progress, without their segments.
KEPT_WHOLE = 2


class CheckpointError(SkewlessError):
    """The checkpoint does not fit the query; the message says why and what to do."""


@dataclass(frozen=True)
class OperatorState:
    """What one operator remembers between batches."""

    route: Route
    max_time_us: dict[str, int | None]  # per side: the largest event time seen
    watermark_us: int | None
    segments: tuple[Segment, ...] = ()
    planner: dict[str, Any] = field(default_factory=dict)  # opaque: belongs to the control loop
    previous_us: int | None = None  # the watermark one batch before, where an operator needs it

    def to_json(self) -> dict[str, Any]:
        return {
            "route": self.route.to_json(),
            "maxTimeUs": self.max_time_us,
            "watermarkUs": self.watermark_us,
            "segments": [s.to_json() for s in self.segments],
            "planner": self.planner,
            "previousUs": self.previous_us,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "OperatorState":
        return OperatorState(
            route=route_from_json(record["route"]),
            max_time_us=record["maxTimeUs"],
            watermark_us=record["watermarkUs"],
            segments=tuple(Segment.from_json(s) for s in record["segments"]),
            planner=record["planner"],
            previous_us=record["previousUs"],
        )


@dataclass(frozen=True)
class Commit:
    """The state after a batch. `batch` is −1 before the first one."""

    batch: int
    fingerprint: dict[str, Any]
    operators: tuple[OperatorState, ...]
    progress: dict[str, Any] = field(default_factory=dict)

    def segment_names(self) -> set[str]:
        return {s.name for o in self.operators for s in o.segments}

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "batch": self.batch,
            "fingerprint": self.fingerprint,
            "operators": [o.to_json() for o in self.operators],
            "progress": self.progress,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Commit":
        return Commit(
            batch=record["batch"],
            fingerprint=record["fingerprint"],
            operators=tuple(OperatorState.from_json(o) for o in record["operators"]),
            progress=record["progress"],
        )


@dataclass(frozen=True)
class CommitLog:
    """The commits of a state directory."""

    storage: Storage

    def publish(self, commit: Commit) -> None:
        """Makes a commit real, in one atomic step; a replayed batch replaces its own."""
        self.storage.write_bytes(_name(commit.batch), seal(commit.to_json()))

    def batches(self) -> list[int]:
        """The batches that have a commit, in order."""
        files = own_files(self.storage, COMMITS).values()
        return sorted(file.batch for file in files if not file.is_temporary)

    def load(self, batch: int) -> Commit:
        """The commit of a batch; an error names the file that is missing or damaged."""
        record = self.record(batch)
        if record is None:
            raise CheckpointError(
                f"{self.storage.path(_name(batch))}: the commit of batch {batch} is missing, but "
                "Spark's offset log goes on after it; the checkpoint is incomplete: restore it, or "
                "start over with a new checkpointLocation"
            )
        try:
            commit = Commit.from_json(record)
        except (KeyError, TypeError, ValueError) as failure:
            raise self._unreadable(batch, failure) from failure
        if commit.batch != batch:
            raise self._unreadable(batch, ValueError(f"it is that of batch {commit.batch}"))
        return commit

    def record(self, batch: int) -> dict[str, Any] | None:
        """What a commit file holds, its checksum compared; None where there is none."""
        try:
            content = self.storage.read_bytes(_name(batch))
        except MissingFileError:
            return None
        try:
            record = unseal(content)
        except UnsealedError as failure:
            self._check_format(batch, _unsealed_format(content))
            raise self._unreadable(batch, failure) from failure
        except DamagedError as failure:
            raise self._unreadable(batch, failure) from failure
        self._check_format(batch, record.get("format"))
        return record

    def delete(self, batch: int) -> None:
        self.storage.delete(_name(batch))

    def _check_format(self, batch: int, found: Any) -> None:
        if found != FORMAT:
            raise CheckpointError(
                f"{self.storage.path(_name(batch))}: the checkpoint has format {found!r}, this "
                f"version of Skewless reads format {FORMAT}; go on with the version that wrote it, "
                "or start over with a new checkpointLocation"
            )

    def _unreadable(self, batch: int, failure: Exception) -> CheckpointError:
        return CheckpointError(
            f"{self.storage.path(_name(batch))}: the commit cannot be read ({failure}); restore "
            "the file from a backup, or start over with a new checkpointLocation"
        )


def check_fingerprint(commit: Commit, fingerprint: dict[str, Any], location: str) -> None:
    """Refuses a checkpoint that another query wrote, saying in what it differs."""
    expected = json.loads(json.dumps(fingerprint))
    differences = list(_differences(commit.fingerprint, expected, ""))
    if differences:
        raise CheckpointError(
            f"checkpointLocation: {location} belongs to another query: "
            + "; ".join(differences[:5])
            + ". Use a new checkpointLocation for the changed query, or start the query as it was"
        )


def _differences(old: Any, new: Any, where: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in [*old, *(k for k in new if k not in old)]:
            found += _differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        found = []
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            found += _differences(a, b, f"{where}[{i}]")
        return found
    if old == new:
        return []
    return [f"{where} was {json.dumps(old)} and is now {json.dumps(new)}"]


def _unsealed_format(content: bytes) -> Any:
    """The format of a commit without a checksum: older ones had none."""
    try:
        record = json.loads(content)
    except ValueError:
        return FORMAT
    return record.get("format") if isinstance(record, dict) else FORMAT


def _name(batch: int) -> str:
    return f"{COMMITS}/{commit_name(batch)}"
