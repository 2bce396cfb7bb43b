"""File names of a state directory: who writes what, and which files are ours."""

import re
from dataclasses import dataclass

from skewless.state.storage import TEMPORARY, Storage

COMMITS = "commits"
SEGMENTS = "segments"
REPORTS = "reports"
DROPPED = "dropped"
MANIFESTS = "manifests"
# Where tasks write: every attempt at a batch has a folder of its own in each of them.
BY_ATTEMPT = (SEGMENTS, REPORTS, DROPPED)

_ATTEMPT = re.compile(r"b(?P<batch>[0-9]{12,})-o[0-9]+-[0-9a-z]+")
_PATTERNS = {
    COMMITS: re.compile(r"(?P<batch>[0-9]{12,})\.json"),
    MANIFESTS: re.compile(rf"{_ATTEMPT.pattern}\.arrow"),
    **dict.fromkeys(BY_ATTEMPT, _ATTEMPT),
}
_INSTANCE = re.compile(r"i([0-9]{5,})\.json")


@dataclass(frozen=True)
class BatchNames:
    """Names for one attempt at one batch of one operator.

    The attempt is new each time the driver begins a batch: what a task of a dead driver may still
    write never meets the files of the living one.
    """

    batch: int
    operator: int
    attempt: str

    @property
    def folder(self) -> str:
        """Where the tasks of the attempt write, in each of the folders of BY_ATTEMPT."""
        return f"b{self.batch:012d}-o{self.operator}-{self.attempt}"

    def segment(self, instance: int, side: str, part: str) -> str:
        return f"{self.folder}-i{instance:05d}-{side}-{part}.arrow"

    def report(self, instance: int) -> str:
        """Where a report is, below its directory."""
        return f"{self.folder}/i{instance:05d}.json"


def instance_of(report: str) -> int | None:
    """The instance whose report has this name; None: the file is somebody else's.

    >>> instance_of("i00007.json"), instance_of(".DS_Store")
    (7, None)
    """
    found = _INSTANCE.fullmatch(report)
    return None if found is None else int(found[1])


def folder_of(segment: str) -> str:
    """The folder of a segment or of a file of dropped rows, by its name.

    >>> folder_of(BatchNames(7, 0, "a").segment(3, "left", "0000"))
    'b000000000007-o0-a'
    """
    return segment.partition("-i")[0]


def commit_name(batch: int) -> str:
    return f"{batch:012d}.json"


@dataclass(frozen=True)
class OwnFile:
    """A file or folder that Skewless has written, or was writing when it died."""

    batch: int
    is_temporary: bool


def recognise(directory: str, name: str) -> OwnFile | None:
    """What a file or folder of a directory is; None for one that somebody else has put there.

    Such a thing is never read and never deleted: a filesystem (`.nfs0001`), a desktop (`.DS_Store`)
    or a person may have its reasons.

    >>> recognise(REPORTS, BatchNames(7, 0, "a").folder)
    OwnFile(batch=7, is_temporary=False)
    >>> recognise(REPORTS, ".DS_Store")
    """
    final, mark, _ = name.partition(TEMPORARY)
    found = _PATTERNS[directory].fullmatch(final)
    return None if found is None else OwnFile(int(found["batch"]), bool(mark))


def own_files(storage: Storage, directory: str) -> dict[str, OwnFile]:
    """The files of a directory that are ours, or its folders, by name."""
    listed = storage.folders(directory) if directory in BY_ATTEMPT else storage.list(directory)
    found = {name: recognise(directory, name) for name in listed}
    return {name: file for name, file in found.items() if file is not None}


def is_plain_name(name: object) -> bool:
    """Whether a name is that of a file in its own folder and can lead nowhere else.

    >>> [is_plain_name(name) for name in ("orders", "a b%", "..", "../x", "a/b", "")]
    [True, True, False, False, False, False]
    """
    if not isinstance(name, str) or name in ("", ".", ".."):
        return False
    return "/" not in name and "\\" not in name and "\0" not in name
