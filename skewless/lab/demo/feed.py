"""Plays a city into two folders, file by file, as the live input of the demo's streams."""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skewless.lab.workloads.city import City, heat

FADE = 0.7  # how much of the recent heat map is left after one more file


class Feed:
    """Writes one file per side at a time, and counts what is in them.

    Files appear complete, in time order, and the event times of a file follow those of the file
    before, so however many files a micro-batch takes up, no row of them is late.
    """

    def __init__(self, city: City, folder: Path, *, steps_per_file: int) -> None:
        self.orders_dir = folder / "orders"
        self.drivers_dir = folder / "drivers"
        for side in (self.orders_dir, self.drivers_dir):
            side.mkdir(parents=True)
        self.city = city
        self.rows = 0  # both sides together
        self.jumps_s: list[float] = []  # when the crowd jumped, in seconds since the epoch
        side_cells = 1 << city.order
        self.heat = np.zeros((side_cells, side_cells), dtype=np.int64)  # orders per place
        self.recent_heat = np.zeros((side_cells, side_cells))  # with older orders fading out
        self._steps_per_file = steps_per_file
        self._files = 0

    def write_next(self) -> None:
        """Write the next file of both sides."""
        jumps = self.city.jumps
        steps = list(self.city.steps(self._steps_per_file))
        orders = pa.concat_tables([step.orders for step in steps])
        drivers = pa.concat_tables([step.drivers for step in steps])
        name = f"part-{self._files:06d}.parquet"
        # Both sides appear at once, or nearly: a batch with one of them alone would be a poor one.
        # Spark's file sources skip names that start with a dot.
        files = {self.orders_dir: orders, self.drivers_dir: drivers}
        for side, table in files.items():
            pq.write_table(table, side / f".{name}")
        for side in files:
            (side / f".{name}").rename(side / name)
        self._files += 1
        self.rows += orders.num_rows + drivers.num_rows
        new_heat = heat(orders["cell"].to_numpy(), self.city.order)
        self.heat += new_heat
        self.recent_heat = self.recent_heat * FADE + new_heat
        if self.city.jumps > jumps:
            self.jumps_s.append(time.time())
