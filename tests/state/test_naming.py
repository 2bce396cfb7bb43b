"""File names of a batch differ wherever the writers differ, and are told from those of others."""

import uuid
from itertools import product

import pytest

from skewless.state.naming import (
    BY_ATTEMPT,
    COMMITS,
    MANIFESTS,
    REPORTS,
    SEGMENTS,
    BatchNames,
    OwnFile,
    commit_name,
    folder_of,
    instance_of,
    recognise,
)


def test_every_writer_has_names_of_its_own() -> None:
    names = [BatchNames(b, o, a) for b, o, a in product((0, 1, 10), (0, 1), ("aa", "bb"))]
    written = [n.report(i) for n in names for i in (0, 1, 10)]
    written += [
        n.segment(i, side, part)
        for n in names
        for i, side, part in product((0, 1, 10), ("left", "right"), ("0000", "m000"))
    ]
    assert len(set(written)) == len(written)


def test_a_task_run_twice_has_the_same_names() -> None:
    assert BatchNames(1, 0, "aa").segment(2, "left", "0000") == (
        BatchNames(1, 0, "aa").segment(2, "left", "0000")
    )


def test_names_sort_by_batch() -> None:
    batches = [0, 9, 10, 99, 100, 123_456_789]
    names = [BatchNames(b, 0, "aa").report(0) for b in batches]
    assert sorted(names) == names


@pytest.mark.parametrize("batch", [0, 7, 10**12])
def test_own_files_are_recognised_finished_or_not(batch: int) -> None:
    names = BatchNames(batch, 12, uuid.uuid4().hex[:12])
    for directory, name in (
        (COMMITS, commit_name(batch)),
        (MANIFESTS, f"{names.folder}.arrow"),
        *((directory, names.folder) for directory in BY_ATTEMPT),
    ):
        assert recognise(directory, name) == OwnFile(batch, is_temporary=False)
        unfinished = f"{name}.tmp-{uuid.uuid4().hex}"
        assert recognise(directory, unfinished) == OwnFile(batch, is_temporary=True)
        others = {COMMITS, MANIFESTS, REPORTS} - {directory}
        if directory in (COMMITS, MANIFESTS):
            assert [recognise(other, name) for other in others] == [None, None]


def test_a_segment_is_in_the_folder_of_its_attempt() -> None:
    names = BatchNames(7, 12, "0a1b")
    for part in ("0000", f"{uuid.uuid4().hex[:8]}-m003"):
        assert folder_of(names.segment(3, "left", part)) == names.folder
    assert names.report(123_456) == f"{names.folder}/i123456.json"
    assert instance_of(names.report(123_456).rpartition("/")[2]) == 123_456


STRAY = [
    ".nfs000000000000abcd00000001",
    ".DS_Store",
    "._b000000000001-o0-ab-i00000.json",
    ".b000000000001-o0-ab-i00000.json.crc",
    "foo.json",
    "foo.arrow",
    "b1.json",
    "b000000000001-o0-ab-i00000.json~",
    "b000000000001-o0-ab-i00000-left-0000.arrow.bak",
    "b٠٠٠٠٠٠٠٠٠٠٠١-o0-ab-i00000.json",
    "000000000001.json.old",
    "1.json",
    "",
]


@pytest.mark.parametrize("name", STRAY)
def test_files_of_others_are_not(name: str) -> None:
    directories = (COMMITS, MANIFESTS, REPORTS, SEGMENTS)
    assert [recognise(directory, name) for directory in directories] == [None] * 4
    assert instance_of(name) is None
