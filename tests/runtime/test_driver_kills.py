"""kill -9 of the driver, for real: at every named point, and at any time."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from skewless.testing import (
    POINTS,
    Driver,
    Fault,
    Replay,
    assert_same_rows,
    join_oracle,
    wait_until,
)

from .batches import Batch, batches, build, endless, oracle_options

AHEAD = 12  # so many batches are there to be done at any time
KILLS_PER_POINT = 5
KILLS_WHILE_RUNNING = 18
KILLS_AT_ANY_TIME = 7


def test_a_killed_driver_starts_again_where_it_was(tmp_path: Path) -> None:
    """The Python driver dies while a task runs, then its JVM dies at whatever it was doing."""
    made = batches(6)
    Replay(None, tmp_path, made)
    with Driver(tmp_path, build) as driver:
        driver.run_to(Fault("in_task", batch=1))
        driver.start()
        wait_until(lambda: driver.committed() >= 2, 120, "some more batches")
        driver.kill_jvm()
        driver.run()
        assert driver.kills == 2
        assert_same_rows(driver.rows(), join_oracle(made, **oracle_options()))


class Soak:
    """A query that is killed again and again while its input grows."""

    def __init__(self, folder: Path, driver: Driver, seed: int, say: Callable[[str], None]) -> None:
        self.driver = driver
        self.made: list[Batch] = []
        self._rng = np.random.default_rng(seed)
        self._feed = endless(seed)
        self._replay = Replay(None, folder)
        self._offsets = folder / "checkpoint" / "offsets"
        self._say = say

    def at(self, point: str) -> None:
        """A kill at a point of one of the next batches, or of the one that was cut short before."""
        self._top_up()
        fault = Fault(point, self.driver.committed() + 1 + int(self._rng.integers(0, 3)))
        self.driver.run_to(fault)
        self._tell(f"at {point} of batch {fault.batch}")

    def while_running(self) -> None:
        """A kill of the driver or of its JVM up to two seconds after batches begin to flow."""
        self._top_up()
        before = self._last_offset()
        self.driver.start()
        wait_until(
            lambda: self._last_offset() > before or self.driver.wait(0) is not None,
            120,
            "a new batch",
        )
        self._kill_after(self._rng.uniform(0, 2))

    def at_any_time(self) -> None:
        """A kill at any time since the start of the process, also before the query runs."""
        self._top_up()
        self.driver.start()
        self._kill_after(self._rng.uniform(0, 12))

    def end(self) -> None:
        """Runs to the end of the input; the output must be the oracle's."""
        self.driver.run()
        expected = join_oracle(self.made, **oracle_options())
        self._say(f"{self.driver.kills} kills, {len(self.made)} batches, {len(expected)} rows")
        assert_same_rows(self.driver.rows(), expected)

    def _kill_after(self, seconds: float) -> None:
        code = self.driver.wait(seconds)
        if code is not None:  # it came to the end of its batches before
            assert code == 0
            return
        if self._rng.random() < 0.3 and seconds < 2:
            self.driver.kill_jvm()
            self._tell(f"of the JVM after {seconds:.2f} s")
        else:
            self.driver.kill()
            self._tell(f"after {seconds:.2f} s")

    def _top_up(self) -> None:
        while len(self.made) < self.driver.committed() + AHEAD:
            self.made.append(next(self._feed))
            self._replay.add(*self.made[-1])

    def _last_offset(self) -> int:
        names = [p.name for p in self._offsets.glob("*")]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def _tell(self, what: str) -> None:
        self._say(f"kill {self.driver.kills} {what}; committed: {self.driver.committed()}")


@pytest.mark.soak
def test_the_output_survives_fifty_kills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("SKEWLESS_SEED") or time.time())

    def say(text: str) -> None:
        with capsys.disabled():
            print(text, flush=True)

    say(f"\nSKEWLESS_SEED={seed}")
    with Driver(tmp_path, build) as driver:
        soak = Soak(tmp_path, driver, seed, say)
        for _ in range(KILLS_PER_POINT):
            for point in POINTS:
                soak.at(point)
        planned = driver.kills
        while driver.kills < planned + KILLS_WHILE_RUNNING:
            soak.while_running()
        while driver.kills < planned + KILLS_WHILE_RUNNING + KILLS_AT_ANY_TIME:
            soak.at_any_time()
        soak.end()
        assert driver.kills >= 50
