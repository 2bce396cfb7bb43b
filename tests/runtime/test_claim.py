"""A folder of results belongs to one checkpoint, wherever that checkpoint is moved."""

from pathlib import Path

import pytest

from skewless.errors import SkewlessError
from skewless.runtime.claim import MARKER, Claim
from skewless.state.commit import CheckpointError, Commit, CommitLog
from skewless.state.storage import Storage


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def claim(out: Path | str, state: Path) -> Claim:
    return Claim("path", str(out), f"the checkpoint at {state.name}", Storage(str(state)))


def start(claim: Claim) -> None:
    claim.check()
    claim.state.make_directory("commits")
    claim.hold()


def run(claim: Claim, batch: int = 0) -> None:
    start(claim)
    Storage(claim.path).make_directory(f"batch={batch}")
    CommitLog(claim.state).publish(Commit(batch, {}, ()))


def test_a_checkpoint_may_come_back(out: Path, tmp_path: Path) -> None:
    first = claim(out, tmp_path / "a")
    start(first)
    start(first)  # it died before its first batch
    run(first)
    marker = (out / MARKER).read_bytes()
    run(first, 1)
    assert (out / MARKER).read_bytes() == marker
    assert sorted(p.name for p in out.iterdir()) == [MARKER, "batch=0", "batch=1"]


def test_another_checkpoint_is_refused_and_nothing_is_written(out: Path, tmp_path: Path) -> None:
    start(claim(out, tmp_path / "a"))
    for _ in range(2):  # before and after the first batch of the one that was first
        with pytest.raises(SkewlessError) as refused:
            claim(out, tmp_path / "b").check()
        message = str(refused.value)
        assert message.startswith(f"path: {out} belongs to the checkpoint the checkpoint at a, ")
        assert "choose another path, start the query with that checkpoint, or delete" in message
        assert not (tmp_path / "b").exists()
        run(claim(out, tmp_path / "a"))
    run(claim(tmp_path / "another", tmp_path / "b"))


def test_a_moved_checkpoint_keeps_its_results(out: Path, tmp_path: Path) -> None:
    run(claim(out, tmp_path / "a"))
    (tmp_path / "a").rename(tmp_path / "moved")
    run(claim(out, tmp_path / "moved"), 1)
    with pytest.raises(SkewlessError, match="belongs to the checkpoint the checkpoint at moved"):
        claim(out, tmp_path / "a").check()


def test_results_without_a_marker(out: Path, tmp_path: Path) -> None:
    """As an older version has left them, or somebody who deleted the marker."""
    run(claim(out, tmp_path / "a"))
    (out / MARKER).unlink()
    with pytest.raises(SkewlessError, match=r"has rows that the new checkpoint .* at b has not"):
        claim(out, tmp_path / "b").check()
    run(claim(out, tmp_path / "a"), 1)
    assert (out / MARKER).exists()


def test_other_files_in_the_folder_do_not_matter(out: Path, tmp_path: Path) -> None:
    (out / "notes").mkdir(parents=True)
    (out / "batch=9").write_text("a file is not a batch")
    run(claim(out, tmp_path / "a"))


def test_a_damaged_marker_is_refused(out: Path, tmp_path: Path) -> None:
    run(claim(out, tmp_path / "a"))
    content = (out / MARKER).read_bytes()
    (out / MARKER).write_bytes(content.replace(b"location", b"locatiom"))
    with pytest.raises(SkewlessError, match=rf"path: {out}/{MARKER}: .*delete the file if"):
        claim(out, tmp_path / "a").check()


def test_a_damaged_identity_is_refused(out: Path, tmp_path: Path) -> None:
    run(claim(out, tmp_path / "a"))
    (tmp_path / "a" / "identity.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"a/identity.json: .*checksum is missing"):
        claim(out, tmp_path / "a").check()


def test_of_a_filesystem_that_only_spark_knows_nothing_is_said(tmp_path: Path) -> None:
    start(claim("what://host/out", tmp_path / "a"))


def test_of_two_that_start_at_once_one_is_refused(out: Path, tmp_path: Path) -> None:
    first, second = claim(out, tmp_path / "a"), claim(out, tmp_path / "b")
    for one in (first, second):
        one.check()
        one.state.make_directory("commits")
    first.hold()
    with pytest.raises(SkewlessError, match="belongs to the checkpoint the checkpoint at a"):
        second.hold()
    first.check()
