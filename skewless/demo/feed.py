"""Plays a city into two folders in real time, as the live input of the demo's two streams."""

import threading
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.workloads.city import City, heat
from skewless.workloads.streams import write_table

FADE = 0.9  # how much of the recent heat map is left after one more file


class Feed:
    """A background thread that writes one file per side every `period_s` seconds.

    Files appear complete, in time order, and the event times of a file follow those of the file
    before, so however many files a micro-batch takes up, no row of them is late.
    """

    def __init__(
        self, city: City, folder: Path, *, steps_per_file: int, period_s: float = 0.5
    ) -> None:
        self.orders_dir = folder / "orders"
        self.drivers_dir = folder / "drivers"
        for side in (self.orders_dir, self.drivers_dir):
            side.mkdir(parents=True)
        self._city = city
        self._steps_per_file = steps_per_file
        self._period_s = period_s
        self._files = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="city", daemon=True)
        self._failure: Exception | None = None
        self._rows = 0
        side_cells = 1 << city.order
        self._heat = np.zeros((side_cells, side_cells), dtype=np.int64)
        self._recent = np.zeros((side_cells, side_cells), dtype=np.float64)
        self._hour = city.hour

    @property
    def rows(self) -> int:
        """Rows written so far, both sides together."""
        with self._lock:
            return self._rows

    @property
    def hour(self) -> float:
        """The city's hour of the day."""
        with self._lock:
            return self._hour

    def heat(self) -> npt.NDArray[np.int64]:
        """Orders per place since the beginning."""
        with self._lock:
            return self._heat.copy()

    def recent_heat(self) -> npt.NDArray[np.float64]:
        """Orders per place, older ones fading out."""
        with self._lock:
            return self._recent.copy()

    def write_next(self) -> None:
        """Write the next file of both sides."""
        steps = list(self._city.steps(self._steps_per_file))
        orders = pa.concat_tables([step.orders for step in steps])
        drivers = pa.concat_tables([step.drivers for step in steps])
        name = f"part-{self._files:06d}.parquet"
        write_table(orders, self.orders_dir / name)
        write_table(drivers, self.drivers_dir / name)
        new_heat = heat(orders["cell"].to_numpy(), self._city.order)
        with self._lock:
            self._files += 1
            self._rows += orders.num_rows + drivers.num_rows
            self._heat += new_heat
            self._recent = self._recent * FADE + new_heat
            self._hour = self._city.hour

    def start(self) -> None:
        """Begin to write in real time."""
        self._thread.start()

    def stop(self) -> None:
        """Stop writing; raises what went wrong in the thread, if anything did."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.check()

    def check(self) -> None:
        """Raise what went wrong in the thread: a city that stands still must not go unnoticed."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        due = time.monotonic()
        try:
            while not self._stop.is_set():
                self.write_next()
                # From the due time, not from now: a slow file must not slow the city down.
                due += self._period_s
                self._stop.wait(max(0.0, due - time.monotonic()))
        except Exception as failure:
            self._failure = failure
