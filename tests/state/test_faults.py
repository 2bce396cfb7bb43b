"""Faults strike at their point of their batch, once if told so, and nowhere else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skewless.errors import SkewlessError
from skewless.state.faults import ACTIONS, POINTS, Fault, Faults, SimulatedKill, dump_faults


def test_without_faults_every_point_is_passed() -> None:
    for point in POINTS:
        Faults().reach(point, 0)


@pytest.mark.parametrize("point", POINTS)
def test_a_fault_strikes_at_its_point_of_its_batch_only(point: str) -> None:
    faults = Faults((Fault(point, batch=2),))
    for other in POINTS:
        faults.reach(other, 1)
        if other != point:
            faults.reach(other, 2)
    with pytest.raises(SimulatedKill, match=f"fault at {point} of batch 2"):
        faults.reach(point, 2)


def test_no_ordinary_handler_catches_it() -> None:
    assert not issubclass(SimulatedKill, Exception)


def test_a_fault_with_a_marker_strikes_a_single_time(tmp_path: Path) -> None:
    faults = Faults((Fault("in_task", 0, once=str(tmp_path / "struck")),))
    with pytest.raises(SimulatedKill):
        faults.reach("in_task", 0)
    faults.reach("in_task", 0)
    # The marker is a file, so that other processes know of it.
    Faults.parse(dump_faults(faults.faults)).reach("in_task", 0)


def test_kill_is_a_real_kill() -> None:
    code = (
        "from skewless.state.faults import Fault, Faults\n"
        "Faults((Fault('before_commit', 3, 'kill'),)).reach('before_commit', 3)\n"
        "print('alive')"
    )
    died = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert died.returncode == -signal.SIGKILL
    assert died.stdout == ""


def test_faults_travel_as_text() -> None:
    faults = [Fault(p, i, a, once="x") for i, p in enumerate(POINTS) for a in ACTIONS]
    assert Faults.parse(dump_faults(faults)) == Faults(tuple(faults))
    assert Faults.parse(dump_faults([])) == Faults()


def test_a_marker_names_the_process_that_was_struck(tmp_path: Path) -> None:
    marker = tmp_path / "struck"
    with pytest.raises(SimulatedKill):
        Fault("in_task", 0, once=str(marker)).strike()
    assert int(marker.read_text()) == os.getpid()


def test_who_hangs_must_tell_that_it_does() -> None:
    with pytest.raises(SkewlessError, match="once: got None; takes a file"):
        Fault("in_task", 0, "hang")


@pytest.mark.parametrize(
    ("point", "action", "said"),
    [
        ("lunch", "raise", "point: got 'lunch'; takes one of before_sink, in_task"),
        ("in_task", "explode", "action: got 'explode'; takes one of kill, raise"),
    ],
)
def test_an_unknown_point_or_action_is_refused(point: str, action: str, said: str) -> None:
    with pytest.raises(SkewlessError) as refusal:
        Fault(point, 0, action)
    assert said in str(refusal.value)
