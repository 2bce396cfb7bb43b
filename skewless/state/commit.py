"""Commits: one small file per batch that says everything needed to go on after it."""

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skewless.errors import SkewlessError
from skewless.routing.kinds import route_from_json
from skewless.routing.route import Route
from skewless.state.manifest import Manifest, StoredSegments, write_manifest
from skewless.state.naming import COMMITS, BatchNames, commit_name, own_files
from skewless.state.sealed import DamagedError, UnsealedError, seal, unseal
from skewless.state.segment import Segment
from skewless.state.storage import MissingFileError, StateError, Storage

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
    read_us: int | None = None  # when its table was read, by the clock of the driver

    def to_json(self) -> dict[str, Any]:
        """All but the segments, which manifests describe."""
        return {
            "route": self.route.to_json(),
            "maxTimeUs": self.max_time_us,
            "watermarkUs": self.watermark_us,
            "planner": self.planner,
            "previousUs": self.previous_us,
            "readUs": self.read_us,
        }

    @staticmethod
    def from_json(record: dict[str, Any], segments: Iterable[Segment] = ()) -> "OperatorState":
        return OperatorState(
            route=route_from_json(record["route"]),
            max_time_us=record["maxTimeUs"],
            watermark_us=record["watermarkUs"],
            segments=tuple(segments),
            planner=record["planner"],
            previous_us=record["previousUs"],
            read_us=record.get("readUs"),  # checkpoints without tables may have none
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

    def to_json(self, manifests: Sequence[Sequence[Manifest]]) -> dict[str, Any]:
        """The record of a commit; `manifests` describe the segments of each operator."""
        return {
            "format": FORMAT,
            "batch": self.batch,
            "fingerprint": self.fingerprint,
            "operators": [
                {**state.to_json(), "manifests": described}
                for state, described in zip(self.operators, manifests, strict=True)
            ],
            "progress": self.progress,
        }


class CommitLog:
    """The commits of a state directory, and the manifests that describe their segments."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        # Of every segment that a manifest describes: which one, and where in it.
        self._places: dict[str, tuple[Manifest, int]] = {}
        self._sizes: dict[str, int] = {}  # segments in a manifest
        self._needed: Counter[str] = Counter()  # those of them that some commit needs

    def publish(self, commit: Commit) -> None:
        """Makes a commit real, in one atomic step; a replayed batch replaces its own."""
        manifests = [
            self.stored(state.segments, commit.batch, number).manifests
            for number, state in enumerate(commit.operators)
        ]
        self.storage.write_bytes(_name(commit.batch), seal(commit.to_json(manifests)))

    def stored(self, segments: Sequence[Segment], batch: int, operator: int) -> StoredSegments:
        """Segments by the manifests that describe them; a new one for those that none describes."""
        new = [s for s in segments if s.name not in self._places]
        if new:
            name = f"{BatchNames(batch, operator, uuid.uuid4().hex[:12]).folder}.arrow"
            manifest = write_manifest(self.storage, name, new)
            self._learn(manifest, len(new), {s.name: at for at, s in enumerate(new)})
        live: dict[str, list[int]] = {}
        found: dict[str, Manifest] = {}
        for segment in segments:
            manifest, place = self._places[segment.name]
            found[manifest.name] = manifest
            live.setdefault(manifest.name, []).append(place)
        named = []
        for name, places in live.items():
            flags = np.zeros(self._sizes[name], np.bool_)
            flags[places] = True
            named.append(Manifest.of(name, found[name].checksum, flags))
        return StoredSegments(self.storage, tuple(named))

    def describes(self, manifest: str) -> bool:
        """Whether some commit that was loaded needs this manifest."""
        return manifest in self._sizes

    def forget(self, segments: Iterable[str]) -> set[str]:
        """Segments that no commit needs any more; gives the manifests that describe no other."""
        gone = [self._places.pop(name)[0].name for name in segments if name in self._places]
        self._needed.subtract(gone)
        empty = {name for name in gone if not self._needed[name]}
        for name in empty:
            del self._sizes[name], self._needed[name]
        return empty

    def _learn(self, manifest: Manifest, size: int, places: Mapping[str, int]) -> None:
        """Where some segments of a manifest are described, because a commit needs them."""
        self._sizes[manifest.name] = size
        for name, place in places.items():
            if name not in self._places:
                self._places[name] = (manifest, place)
                self._needed[manifest.name] += 1

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
            commit = Commit(
                batch=record["batch"],
                fingerprint=record["fingerprint"],
                operators=tuple(
                    OperatorState.from_json(o, self._segments(o["manifests"]))
                    for o in record["operators"]
                ),
                progress=record["progress"],
            )
        except StateError:
            raise
        except (KeyError, TypeError, ValueError) as failure:
            raise self._unreadable(batch, failure) from failure
        if commit.batch != batch:
            raise self._unreadable(batch, ValueError(f"it is that of batch {commit.batch}"))
        return commit

    def _segments(self, manifests: Sequence[Any]) -> list[Segment]:
        found: list[Segment] = []
        for record in manifests:
            manifest = Manifest.from_json(record)
            whole = Manifest(manifest.name, manifest.checksum)
            described = list(StoredSegments(self.storage, (whole,)))
            live = np.flatnonzero(manifest.flags(len(described))).tolist()
            self._learn(whole, len(described), {described[at].name: at for at in live})
            found += [described[at] for at in live]
        return found

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
