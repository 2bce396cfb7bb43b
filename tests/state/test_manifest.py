"""Manifests: what tasks see of segments by them is what they would see of the segments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.routing.partitions import packed
from skewless.state.commit import CheckpointError, CommitLog
from skewless.state.manifest import Manifest, Segments, StoredSegments, write_manifest
from skewless.state.segment import Segment
from skewless.state.storage import StateError, Storage
from skewless.testing.segments import HeldSegments

from .examples import commit, segment

PARTITIONS = 6


@st.composite
def segments(draw: st.DrawFn) -> list[Segment]:
    made = []
    for number in range(draw(st.integers(0, 12))):
        of = draw(st.sampled_from([PARTITIONS, PARTITIONS, 300]))
        made.append(
            segment(
                f"s{number}",
                side=draw(st.sampled_from(["left", "right"])),
                instance=draw(st.integers(0, 5)),
                first_batch=draw(st.integers(0, 9)),
                of_partitions=of,
                partitions=packed(draw(st.frozensets(st.integers(0, of - 1), max_size=4))),
                mixed_keys=draw(st.booleans()),
                max_time_us=draw(st.integers(-(2**61), 2**61)),
            )
        )
    return made


def seen(one: Segments, partitions: frozenset[int], but: set[str]) -> list[Any]:
    return [
        set(one),
        *(set(one.meeting(side, partitions, PARTITIONS)) for side in ("left", "right")),
        *(set(one.written_by(instance, 4)) for instance in range(4)),
        one.oldest_batch("left", but),
    ]


@given(
    made=segments(),
    live=st.sets(st.integers(0, 11)),
    cut=st.integers(0, 12),
    partitions=st.frozensets(st.integers(0, PARTITIONS - 1)),
)
def test_stored_segments_are_seen_as_held_ones(made, live, cut, partitions) -> None:
    storage = Storage("mock:///s")
    storage.make_directory("manifests")
    named, kept = [], []
    for number, part in enumerate((made[:cut], made[cut:])):
        flags = np.array([made.index(s) in live for s in part], np.bool_)
        kept += [s for s, is_live in zip(part, flags.tolist(), strict=True) if is_live]
        if part:
            written = write_manifest(storage, f"m{number}.arrow", part)
            named.append(Manifest.of(written.name, written.checksum, flags))
    stored = StoredSegments(storage, tuple(named))
    but = {s.name for s in made[::2]}
    assert seen(stored, partitions, but) == seen(HeldSegments(tuple(kept)), partitions, but)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = Storage(str(tmp_path))
    for directory in ("commits", "manifests"):
        storage.make_directory(directory)
    return storage


def test_what_is_described_is_written_once(storage: Storage) -> None:
    log = CommitLog(storage)
    log.publish(commit(0, segment("a"), segment("b")))
    first = storage.list("manifests")
    log.publish(commit(1, segment("a"), segment("b"), segment("c")))
    assert len(first) == 1
    assert len(storage.list("manifests")) == 2
    log.publish(commit(2, segment("b"), segment("c")))
    assert len(storage.list("manifests")) == 2, "nothing is new"
    again = CommitLog(storage)
    assert again.load(2).segment_names() == {"b", "c"}
    assert again.load(1).segment_names() == {"a", "b", "c"}
    assert again.forget(["a"]) == set(), "b is described there, too"
    assert again.forget(["b", "unknown"]) == set(first)
    assert not again.describes(first[0])


def test_a_commit_and_a_task_stay_small(storage: Storage) -> None:
    """However many segments there are: only their manifests are named."""
    log = CommitLog(storage)
    many = tuple(
        segment(f"s{n}", partitions=packed(range(8)), of_partitions=8) for n in range(5_000)
    )
    log.publish(commit(0, *many))
    record = len(storage.read_bytes("commits/000000000000.json"))
    log.publish(commit(1, *many[:-1]))
    assert len(storage.read_bytes("commits/000000000001.json")) < record + 2_000
    assert record < 1_000


@pytest.mark.parametrize("harm", ["missing", "corrupt"])
def test_a_damaged_manifest_is_named(storage: Storage, harm: str) -> None:
    CommitLog(storage).publish(commit(0, segment("a"), segment("b", side="right")))
    (name,) = storage.list("manifests")
    path = f"manifests/{name}"
    moved = Storage(storage.path(""))  # another process has nothing in memory
    if harm == "missing":
        moved.delete(path)
    else:
        content = bytearray(moved.read_bytes(path))
        content[len(content) // 2] ^= 4
        moved.write_bytes(path, bytes(content))
    with pytest.raises(StateError, match=f"{name}.*{harm}.*restore the file"):
        CommitLog(moved).load(0)


def test_a_manifest_elsewhere_is_refused(storage: Storage) -> None:
    log = CommitLog(storage)
    with pytest.raises(ValueError, match="is not the name of a manifest"):
        Manifest.from_json(["../../a.arrow", 0, None])
    with pytest.raises(CheckpointError, match="missing"):
        log.load(0)
