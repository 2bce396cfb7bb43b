"""Subscriptions in the order of their index: those of a batch, and those of a stored segment."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.columns import BOX, IDENTITY, TIME
from skewless.kernels.ordering import IndexArray
from skewless.kernels.rectangles import Boxes, Extent, RectangleIndex
from skewless.kernels.runs import SortedRun, concatenate
from skewless.operators.subscribe.shapes import ReadShapes
from skewless.routing.cells import CellGrid, Numbers

Mask = npt.NDArray[np.bool_]
# The batch that brought a subscription stands where other rows have their time.
VERSION = pa.timestamp("us")


@dataclass(frozen=True)
class CellRanges:
    """The cells that rectangles touch; both ends are inclusive."""

    top: Numbers
    left: Numbers
    bottom: Numbers
    right: Numbers

    @staticmethod
    def of(grid: CellGrid, boxes: Boxes) -> "CellRanges":
        return CellRanges(
            grid.rows(boxes.y_min),
            grid.columns(boxes.x_min),
            grid.rows(boxes.y_max),
            grid.columns(boxes.x_max),
        )

    @staticmethod
    def joined(parts: "Sequence[CellRanges]") -> "CellRanges":
        """Several as one."""
        return CellRanges(
            np.concatenate([part.top for part in parts]),
            np.concatenate([part.left for part in parts]),
            np.concatenate([part.bottom for part in parts]),
            np.concatenate([part.right for part in parts]),
        )

    def first_cells(self, grid: CellGrid) -> Numbers:
        return self.top * grid.side + self.left

    def covered(self, grid: CellGrid) -> Numbers:
        """The cells that any of them touches."""
        # Each adds one in its rectangle: four corners of a difference that is then summed up.
        steps = np.zeros((grid.side + 1, grid.side + 1), np.int64)
        np.add.at(steps, (self.top, self.left), 1)
        np.add.at(steps, (self.bottom + 1, self.left), -1)
        np.add.at(steps, (self.top, self.right + 1), -1)
        np.add.at(steps, (self.bottom + 1, self.right + 1), 1)
        counts = steps.cumsum(axis=0).cumsum(axis=1)[: grid.side, : grid.side]
        return np.flatnonzero(counts)


@dataclass(frozen=True)
class Subscriptions:
    """Rows in the order of their keys, as a segment has them."""

    grid: CellGrid
    run: SortedRun

    @staticmethod
    def sorted(grid: CellGrid, rows: pa.RecordBatch, versions: IndexArray) -> "Subscriptions":
        """Rows of the stored columns in order; `versions` are the batches that brought them."""
        boxes = boxes_of(rows)
        keys = _extent(grid).keys(boxes)
        order = np.argsort(keys, kind="stable")
        present = CellRanges.of(grid, boxes).covered(grid)
        columns = [pa.array(versions[order], VERSION), *rows.take(pa.array(order)).columns]
        told = pa.RecordBatch.from_arrays(columns, names=[TIME, *rows.schema.names])
        run = SortedRun(keys[order], versions[order], told, mixed_keys=False, present=present)
        return Subscriptions(grid, run)

    def __len__(self) -> int:
        return len(self.run)

    @property
    def rows(self) -> pa.RecordBatch:
        return self.run.rows

    @cached_property
    def boxes(self) -> Boxes:
        return boxes_of(self.run.rows)

    def ranges(self, rows: Mask | IndexArray) -> CellRanges:
        """The cells of some of the rows."""
        return CellRanges.of(self.grid, self.boxes.among(rows))

    @cached_property
    def index(self) -> RectangleIndex:
        return RectangleIndex(_extent(self.grid), self.run.hashes, self.boxes)

    @cached_property
    def shapes(self) -> ReadShapes:
        """Those of its polygons that were asked about, for as long as a process has it open."""
        return ReadShapes(len(self))

    @cached_property
    def by_identity(self) -> tuple[npt.NDArray[np.int64], IndexArray]:
        """The identities in order, and the row of each."""
        identities = self.run.rows.column(IDENTITY).to_numpy()
        order = np.argsort(identities, kind="stable")
        return identities[order], order

    def kept(self, mask: Mask) -> "Subscriptions":
        """Some of the rows; they may touch fewer cells."""
        if mask.all():
            return self
        rows = self.run.rows.filter(pa.array(mask))
        columns = rows.schema.names[1:]
        return Subscriptions.sorted(self.grid, rows.select(columns), self.run.times[mask])

    def known_as(
        self, identities: npt.NDArray[np.int64], ids: pa.Array, id_column: str
    ) -> IndexArray:
        """The rows that have one of these ids."""
        known, order = self.by_identity
        low = np.searchsorted(known, identities, side="left")
        count = np.searchsorted(known, identities, side="right") - low
        place = np.repeat(np.arange(len(identities)), count)
        within = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        row: IndexArray = order[low[place] + within]
        if not len(row):
            return row
        # Equal hashes are a hint, equal ids the proof.
        mine = self.run.rows.column(id_column).take(pa.array(row))
        same = pa.compute.equal(mine, ids.take(pa.array(place)).cast(mine.type))
        return row[same.fill_null(False).to_numpy(zero_copy_only=False)]


def merged(grid: CellGrid, parts: Sequence[Subscriptions]) -> Subscriptions | None:
    """Several as one; None: there is nothing."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return None
    names = parts[0].rows.schema.names[1:]
    rows = concatenate([part.rows.select(names) for part in parts])
    return Subscriptions.sorted(grid, rows, np.concatenate([part.run.times for part in parts]))


def boxes_of(rows: pa.RecordBatch) -> Boxes:
    """The rectangles of rows; NaN where an edge is null."""
    edges = (rows.column(name) for name in BOX)
    return Boxes(*(edge.to_numpy(zero_copy_only=edge.null_count == 0) for edge in edges))


def _extent(grid: CellGrid) -> Extent:
    return Extent(*grid.bounds)
