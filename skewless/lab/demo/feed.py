"""Plays a city into two folders, file by file, as the live input of the demo's streams."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skewless.lab.workloads.city import City, Step, heat

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
        self.counts = {"orders": 0, "drivers": 0}  # rows
        self.files = 0  # of each side
        self.jumps_s: list[float] = []  # when the crowd jumped, in seconds since the epoch
        side_cells = 1 << city.order
        self.heat = np.zeros((side_cells, side_cells), dtype=np.int64)  # orders per place
        self.recent_heat = np.zeros((side_cells, side_cells))  # with older orders fading out
        self._steps_per_file = steps_per_file

    @property
    def rows(self) -> int:
        """Both sides together."""
        return self.counts["orders"] + self.counts["drivers"]

    def write_next(self) -> None:
        """Write the next file of both sides."""
        jumps = self.city.jumps
        steps = list(self.city.steps(self._steps_per_file))
        orders, drivers = self._tables(steps)
        name = f"part-{self.files:06d}.parquet"
        # Both sides appear at once, or nearly: a batch with one of them alone would be a poor one.
        # Spark's file sources skip names that start with a dot.
        files = {self.orders_dir: orders, self.drivers_dir: drivers}
        for side, table in files.items():
            pq.write_table(table, side / f".{name}")
        for side in files:
            (side / f".{name}").rename(side / name)
        self.files += 1
        self.counts["orders"] += orders.num_rows
        self.counts["drivers"] += drivers.num_rows
        cells = pa.concat_tables([step.orders for step in steps])["cell"]
        new_heat = heat(cells.to_numpy(), self.city.order)
        self.heat += new_heat
        self.recent_heat = self.recent_heat * FADE + new_heat
        if self.city.jumps > jumps:
            self.jumps_s.append(time.time())

    def _tables(self, steps: Sequence[Step]) -> tuple[pa.Table, pa.Table]:
        """Orders and drivers of these steps, as they are written."""
        orders = pa.concat_tables([step.orders for step in steps])
        return orders, pa.concat_tables([step.drivers for step in steps])
