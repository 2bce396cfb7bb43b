"""Marks: which stored subscriptions have ended or were replaced.

Segments never change. So the instance that owns the first cell of a subscription that ends writes a
mark: the name of its segment, and its row. Whoever reads a cell that the subscription reaches reads
the mark, too. A merge leaves marked rows behind, and marks of segments that are gone are dropped.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from skewless.engine.columns import TIME
from skewless.kernels.ordering import IndexArray
from skewless.kernels.runs import SortedRun, concatenate
from skewless.operators.subscribe.subscriptions import VERSION, Mask
from skewless.state.segment import Segment, open_segment
from skewless.state.storage import Storage

_SEGMENT, _ROW = "g", "r"


def marked(rows: Mapping[str, IndexArray], cells: IndexArray, batch: int) -> SortedRun:
    """Marks of rows of segments, by the name of the segment; `cells` are those that they reach."""
    count = sum(len(numbers) for numbers in rows.values())
    names = [pa.repeat(pa.scalar(name), len(numbers)) for name, numbers in rows.items()]
    columns = [
        pa.array(np.full(count, batch), VERSION),
        pa.concat_arrays(names) if names else pa.array([], pa.string()),
        pa.array(np.concatenate([*rows.values(), np.zeros(0, np.int64)]).astype(np.int32)),
    ]
    told = pa.RecordBatch.from_arrays(columns, names=[TIME, _SEGMENT, _ROW])
    nothing = np.zeros(count, np.uint64)
    return SortedRun(nothing, np.full(count, batch), told, mixed_keys=False, present=cells)


def read_marks(storage: Storage, segments: Iterable[Segment]) -> dict[str, IndexArray]:
    """The marked rows of every segment that some of these segments of marks tell of."""
    found: dict[str, list[IndexArray]] = {}
    for segment in segments:
        rows = open_segment(storage, segment, TIME).rows
        names = rows.column(_SEGMENT).dictionary_encode()
        numbers = rows.column(_ROW).to_numpy().astype(np.int64)
        for code, name in enumerate(names.dictionary.to_pylist()):
            found.setdefault(name, []).append(numbers[names.indices.to_numpy() == code])
    return {name: np.unique(np.concatenate(parts)) for name, parts in found.items()}


def merged_marks(
    runs: Sequence[SortedRun], segments: Sequence[Segment], live: Collection[str]
) -> SortedRun | None:
    """Marks of several segments as one, of those rows whose segment is still there."""
    rows = concatenate([run.rows for run in runs])
    kept = np.isin(rows.column(_SEGMENT).to_numpy(zero_copy_only=False), list(live))
    if not kept.any():
        return None
    rows = rows.filter(pa.array(kept))
    cells = np.unique(
        np.concatenate([np.frombuffer(s.partitions, "<u2").astype(np.int64) for s in segments])
    )
    times = rows.column(TIME).view(pa.int64()).to_numpy()
    return SortedRun(np.zeros(len(times), np.uint64), times, rows, False, present=cells)


def alive(count: int, gone: IndexArray | None) -> Mask | None:
    """Which of so many rows are not marked; None: none is."""
    if gone is None or not len(gone):
        return None
    mask = np.ones(count, np.bool_)
    mask[gone] = False
    return mask
