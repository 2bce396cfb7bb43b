"""The report a task leaves behind: what it saw, what it did, what it cost."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from skewless.state.dropped import DroppedFile
from skewless.state.naming import REPORTS
from skewless.state.sealed import seal, unseal
from skewless.state.segment import Segment
from skewless.state.storage import StateError, Storage


@dataclass(frozen=True)
class PartitionLoads:
    """Rows and matches of the partitions that had any in this batch."""

    partitions: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    matches: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class HotKeyLoad:
    """What the rows of one heavy key at home on one instance were and did."""

    hash: int  # unsigned
    rows: dict[str, int]  # per side that has any
    matches: int


@dataclass(frozen=True)
class DroppedRow:
    """A row that was dropped, as people are shown it."""

    input: str
    reason: str
    row: dict[str, Any]


@dataclass(frozen=True)
class Report:
    """One task's account of one batch. Counts are per side."""

    instance: int
    rows: dict[str, int]  # at home here
    replicas: dict[str, int]  # rows of this batch at home elsewhere
    late: dict[str, int]
    null_keys: dict[str, int]
    bad_rows: dict[str, int]
    max_time_us: dict[str, int | None]
    matches: int  # pairs, or groups given out at once
    cpu_ms: float
    wall_ms: float
    peak_memory_bytes: int
    segments: list[Segment]  # new in this batch, merged ones among them
    replaced: list[str]  # names of the segments that were merged away
    partitions: PartitionLoads = field(default_factory=PartitionLoads)
    hot_keys: list[HotKeyLoad] = field(default_factory=list)
    comparisons: int = 0  # pairs that were looked at; at least the matches
    output_rows: int | None = None  # rows that a map gave
    costs: dict[str, Any] | None = None  # what a map has learned of its rows' costs
    probing: dict[str, Any] | None = None  # how much of the windows a join that sheds has probed
    corners: dict[str, Any] | None = None  # of subscriptions that have begun, and that are gone
    dropped: list[DroppedRow] = field(default_factory=list)  # a few of the late and bad rows
    dropped_files: list[DroppedFile] = field(default_factory=list)  # or all of them

    def to_json(self) -> dict[str, Any]:
        # Not `asdict` of the whole: it copies long lists of partitions number by number.
        return {
            **vars(self),
            "segments": [s.to_json() for s in self.segments],
            "partitions": vars(self.partitions),
            "hot_keys": [vars(key) for key in self.hot_keys],
            "dropped": [vars(row) for row in self.dropped],
            "dropped_files": [asdict(file) for file in self.dropped_files],
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Report":
        record = dict(record)
        record["segments"] = [Segment.from_json(s) for s in record["segments"]]
        record["partitions"] = PartitionLoads(**record["partitions"])
        record["hot_keys"] = [HotKeyLoad(**k) for k in record["hot_keys"]]
        record["dropped"] = [DroppedRow(**d) for d in record["dropped"]]
        record["dropped_files"] = [DroppedFile(**f) for f in record["dropped_files"]]
        return Report(**record)


def write_report(storage: Storage, name: str, report: Report) -> None:
    storage.write_bytes(f"{REPORTS}/{name}", seal(report.to_json()))


def read_reports(storage: Storage, names: Sequence[str]) -> list[Report]:
    """The reports of tasks that have run to their end, at once."""
    places = [f"{REPORTS}/{name}" for name in names]
    contents = storage.read_all(places)
    return [_read(storage, at, content) for at, content in zip(places, contents, strict=True)]


def _read(storage: Storage, place: str, content: bytes) -> Report:
    try:
        return Report.from_json(unseal(content))
    except (KeyError, TypeError, ValueError) as failure:
        raise StateError(
            f"{storage.path(place)}: the report of a task cannot be read ({failure}); nothing of "
            "the batch was committed: start the query again to run it once more"
        ) from failure
