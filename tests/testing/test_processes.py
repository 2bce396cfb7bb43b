"""Processes of a test are waited for and leave nothing behind."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from skewless.errors import SkewlessError
from skewless.testing import Fault, ProcessTree, wait_until

# A process with a child in a group of its own, as the daemon of Python workers is.
PARENT = """
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"],
                         start_new_session=False, process_group=0)
print("child", child.pid, flush=True)
signal.pause()
"""


def test_waiting_gives_the_answer_or_says_what_for() -> None:
    answers = iter([None, 0, "there"])
    assert wait_until(lambda: next(answers), 5) == "there"
    with pytest.raises(AssertionError, match=r"waited 0 s for rain"):
        wait_until(lambda: False, 0, "rain")


def test_a_tree_is_killed_with_its_children(tmp_path: Path) -> None:
    with ProcessTree([sys.executable, "-c", PARENT], tmp_path / "log") as tree:
        wait_until(lambda: "child" in tree.text() and len(tree.alive()) == 2, 30, "the child")
        child = int(tree.text().split()[1])
        assert [p.pid for p in tree.find("PARENT")] == []
        assert {p.pid for p in tree.find("signal.pause()")} == {tree.pid, child}
        tree.kill()
        assert tree.returncode == -signal.SIGKILL
        assert [p.pid for p in tree.alive()] == [child], "only the first process is killed"
        with pytest.raises(AssertionError, match="to end"):
            tree.wait_gone(0)
    assert tree.alive() == []
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_the_exit_code_is_kept(tmp_path: Path) -> None:
    with ProcessTree([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "log") as tree:
        assert tree.wait(30) == 3


def test_a_fault_strikes_once_and_leaves_its_process_id(tmp_path: Path) -> None:
    marker = tmp_path / "struck"
    fault = Fault("in_task", 0, once=str(marker))
    with pytest.raises(BaseException, match="fault at in_task of batch 0"):
        fault.strike()
    assert marker.read_text() == str(os.getpid())
    fault.strike()


def test_a_fault_that_hangs_needs_a_file_to_tell_of_it() -> None:
    with pytest.raises(SkewlessError, match="once"):
        Fault("in_task", 0, action="hang")
