"""One live query per state directory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skewless.state.commit import CheckpointError
from skewless.state.lock import DirectoryLock
from skewless.state.storage import Storage

HOLDER = """
import sys, time
from skewless.state.lock import DirectoryLock
from skewless.state.storage import Storage
lock = DirectoryLock(Storage(sys.argv[1]), "the other query")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_lock_is_refused_and_names_the_holder(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    lock = DirectoryLock(storage, "dispatch")
    with pytest.raises(CheckpointError) as refusal:
        DirectoryLock(storage, "another")
    message = str(refusal.value)
    assert message.startswith(f"checkpointLocation: {tmp_path} is in use by a live query")
    assert '"query": "dispatch"' in message
    assert f'"pid": {os.getpid()}' in message
    lock.release()


def test_a_refusal_does_not_take_the_lock_from_its_holder(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    lock = DirectoryLock(storage, "first")
    for _ in range(2):
        with pytest.raises(CheckpointError, match="first"):
            DirectoryLock(storage, "second")
    lock.release()


def test_released_it_can_be_taken_again(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    first = DirectoryLock(storage, "a query with a long name")
    first.release()
    first.release()
    second = DirectoryLock(storage, "b")
    with pytest.raises(CheckpointError) as refusal:
        DirectoryLock(storage, "c")
    assert '{"query": "b"' in str(refusal.value)
    assert "long name" not in str(refusal.value)
    second.release()


def test_two_directories_do_not_meet(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    locks = [DirectoryLock(Storage(str(tmp_path / d)), d) for d in ("a", "b")]
    for lock in locks:
        lock.release()


def test_a_filesystem_without_locks_is_not_locked() -> None:
    storage = Storage("mock:///state")
    DirectoryLock(storage, "a").release()
    assert not storage.exists("lock")


def test_the_kernel_frees_the_lock_of_a_killed_process(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(CheckpointError, match="the other query") as refusal:
            DirectoryLock(storage, "mine")
        assert f'"pid": {holder.pid}' in str(refusal.value)
        holder.kill()
        holder.wait()
    DirectoryLock(storage, "mine").release()
