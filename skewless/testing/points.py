"""Points of a table as they travel to the tasks of a join by distance, computed by numpy."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.kernels.distance import Floats
from skewless.kernels.pieces import one_array
from skewless.operators.join.near import Near, Nearest
from skewless.routing.blocks import blocks, cell_hashes

HashFunction = Callable[[pa.Table], npt.NDArray[np.uint64]]


def doubles(table: pa.Table, name: str) -> pa.Array:
    """A column of numbers as doubles."""
    return one_array(table.column(name).cast(pa.float64(), safe=False))


def cell_items(
    match: Near | Nearest, table: pa.Table, *, is_left: bool, on: Sequence[str], hash_: HashFunction
) -> pa.Array:
    """The hashes of every row's cells, each once; none of a row that can match nothing."""
    names = match.points[not is_left]
    x, y = (_numbers(doubles(table, name)) for name in names)
    most = match.cells.most
    usable = (np.abs(x) <= most[0]) & (np.abs(y) <= most[1])  # false for NaN, and so for nulls
    for key in on:
        usable &= ~pc.is_null(table.column(key)).to_numpy()
    rows = np.flatnonzero(usable)
    cells = match.cells
    found = (cells.own if is_left else cells.reached)(x[rows], y[rows])
    count = 1 if is_left else found[0].shape[1]
    at_x, at_y = (places.reshape(len(rows), count) for places in found)
    keys = table.select(list(on)).take(pa.array(np.repeat(rows, count)))
    numbers = blocks(at_x.ravel(), at_y.ravel())
    hashed = pa.table(
        [*keys.columns, *map(pa.array, numbers)], names=[*keys.column_names, "block_x", "block_y"]
    )
    hashes = cell_hashes(hash_(hashed).astype(np.uint64), at_x.ravel(), at_y.ravel())
    lists: list[list[int]] = [[] for _ in range(table.num_rows)]
    of_rows = hashes.view(np.int64).reshape(len(rows), count).tolist()
    for row, of_row in zip(rows.tolist(), of_rows, strict=True):
        lists[row] = list(dict.fromkeys(of_row))
    return pa.array(lists, pa.list_(pa.int64()))


def _numbers(column: pa.Array) -> Floats:
    numbers: Floats = column.fill_null(np.nan).to_numpy()
    return numbers
