"""Sessions: events, or stretches of them, that no gap parts."""

import numpy as np
from numba import njit

from skewless.kernels.groups import Groups
from skewless.kernels.ordering import TimeArray


@njit(cache=True, nogil=True)
def _chain_begins(key_begins, starts, ends, chain):  # type: ignore[no-untyped-def]
    found = 0
    rows = len(starts)
    keys = len(key_begins)
    for key in range(keys):
        stop = key_begins[key + 1] if key + 1 < keys else rows
        reach = 0
        for i in range(key_begins[key], stop):
            if i == key_begins[key] or starts[i] > reach:
                chain[found] = i
                found += 1
                reach = ends[i]
            elif ends[i] > reach:
                reach = ends[i]
    return found


def chains(keys: Groups, starts: TimeArray, ends: TimeArray) -> Groups:
    """Parts the rows of each key, which stand in the order of their starts, into sessions.

    A stretch that begins at the very end of another belongs to it, as in Spark (`start ≤ end`).

    >>> one_key = Groups(np.arange(3), np.array([0]))
    >>> chains(one_key, np.array([0, 10, 21]), np.array([10, 20, 31])).begins.tolist()
    [0, 2]
    """
    begins = np.empty(keys.rows, np.int64)
    found = _chain_begins(keys.begins, starts[keys.order], ends[keys.order], begins)
    return Groups(keys.order, begins[:found])
