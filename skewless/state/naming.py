"""File names of a state directory: who writes what, and which files are ours."""

import re
from dataclasses import dataclass

from skewless.state.storage import TEMPORARY, Storage

COMMITS = "commits"
SEGMENTS = "segments"
REPORTS = "reports"
DROPPED = "dropped"

_STEM = r"b(?P<batch>[0-9]{12,})-o[0-9]+-[0-9a-z]+-i[0-9]{5,}"
_PATTERNS = {
    COMMITS: re.compile(r"(?P<batch>[0-9]{12,})\.json"),
    SEGMENTS: re.compile(rf"{_STEM}-[0-9a-z-]+\.arrow"),
    REPORTS: re.compile(rf"{_STEM}\.json"),
    DROPPED: re.compile(rf"{_STEM}-[0-9a-z-]+\.arrow"),
}


@dataclass(frozen=True)
class BatchNames:
    """Names for one attempt at one batch of one operator.

    The attempt is new each time the driver begins a batch: what a task of a dead driver may still
    write never meets the files of the living one.
    """

    batch: int
    operator: int
    attempt: str

    def segment(self, instance: int, side: str, part: str) -> str:
        return f"{self._stem(instance)}-{side}-{part}.arrow"

    def report(self, instance: int) -> str:
        return f"{self._stem(instance)}.json"

    def _stem(self, instance: int) -> str:
        return f"b{self.batch:012d}-o{self.operator}-{self.attempt}-i{instance:05d}"


def commit_name(batch: int) -> str:
    return f"{batch:012d}.json"


@dataclass(frozen=True)
class OwnFile:
    """A file that Skewless has written, or was writing when it died."""

    batch: int
    is_temporary: bool


def recognise(directory: str, name: str) -> OwnFile | None:
    """What a file of a directory is; None for one that somebody else has put there.

    Such a file is never read and never deleted: a filesystem (`.nfs0001`), a desktop (`.DS_Store`)
    or a person may have its reasons.

    >>> recognise(REPORTS, BatchNames(7, 0, "a").report(3))
    OwnFile(batch=7, is_temporary=False)
    >>> recognise(REPORTS, ".DS_Store")
    """
    final, mark, _ = name.partition(TEMPORARY)
    found = _PATTERNS[directory].fullmatch(final)
    return None if found is None else OwnFile(int(found["batch"]), bool(mark))


def own_files(storage: Storage, directory: str) -> dict[str, OwnFile]:
    """The files of a directory that are ours, by name."""
    found = {name: recognise(directory, name) for name in storage.list(directory)}
    return {name: file for name, file in found.items() if file is not None}


def is_plain_name(name: object) -> bool:
    """Whether a name is that of a file in its own folder and can lead nowhere else.

    >>> [is_plain_name(name) for name in ("orders", "a b%", "..", "../x", "a/b", "")]
    [True, True, False, False, False, False]
    """
    return isinstance(name, str) and name not in ("", ".", "..") and not re.search(r"[/\\\0]", name)
