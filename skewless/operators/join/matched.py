"""Marks the rows that have a match, without making the pairs where nobody asks for them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from skewless.engine.chunks import Chunks
from skewless.kernels.conditions import Condition
from skewless.kernels.equijoin import Probe
from skewless.kernels.intervals import covered

Mask = npt.NDArray[np.bool_]


def mark(
    found: Probe,
    keys: Sequence[str],
    condition: Condition | None,
    chunks: Chunks,
    needles: Mask | None = None,
    stored: Mask | None = None,
) -> None:
    """Sets the rows of both runs of a probe that are in any pair; None: nobody asks.

    Equal keys within the bounds are ranges of stored rows, and ranges need no look at their pairs.
    """
    if condition is None and not found.compare_pairs:
        if needles is not None:
            needles |= found.count > 0
        if stored is not None:
            stored |= covered(found.start, found.count, len(stored))
        return
    for mine, theirs in chunks.portions(found, keys, condition):
        if needles is not None:
            needles[mine] = True
        if stored is not None:
            stored[theirs] = True
