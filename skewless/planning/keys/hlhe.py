"""HLHE discretisation (§IV-B): few distinct values whose sums are those of the originals.

Representatives are linear above the degree R and powers of two below it: s·R, …, 2R, R, R/2, …, 2,
1, in units of the smallest value. Every value is rounded to the neighbour that keeps the running
error smallest, so what one key is given too much the next is given too little.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.errors import bad_argument
from skewless.planning.keys.snapshot import Floats, Instances

Codes = npt.NDArray[np.int64]
MAX_DEGREE = 2**20
# In units; what is smaller by more than this counts as one unit, and codes stay whole numbers.
_LARGEST = 2.0**40


@dataclass(frozen=True, eq=False)
class Discretised:
    """Values as codes, from 0 (for 0 only) up in the order of their representatives."""

    codes: Codes
    unit: float
    degree: int

    def value_of(self, codes: Codes) -> Floats:
        """The representatives that codes stand for."""
        r = self.degree.bit_length() - 1
        powers = np.exp2(np.minimum(codes, r) - 1.0)
        values = np.where(codes <= r, powers, (codes - r).astype(np.float64) * self.degree)
        return np.where(codes == 0, 0.0, values * self.unit)

    @property
    def values(self) -> Floats:
        return self.value_of(self.codes)


@njit(cache=True, nogil=True)
def _rounded(values, bits, degree, r, highest, group, groups):  # type: ignore[no-untyped-def]
    n = len(values)
    codes = np.zeros(n, np.int64)
    # Large values first, so that the small ones can even out their error: by their power of two,
    # all from R up as one class. Within a class the order hardly matters, and sorting would cost
    # more than all the rest.
    classes = r + 1
    start = np.zeros(classes + 1, np.int64)
    of_class = np.empty(n, np.int8)
    for i in range(n):
        if values[i] <= 0.0:
            of_class[i] = -1
            continue
        power = np.int64(bits[i] >> np.uint64(52)) - 1023
        at = r - min(max(power, 0), r)
        of_class[i] = at
        start[at + 1] += 1
    for at in range(classes):
        start[at + 1] += start[at]
    order = np.empty(start[classes], np.int32)
    for i in range(n):
        at = of_class[i]
        if at >= 0:
            order[start[at]] = i
            start[at] += 1
    error = np.zeros(groups, np.float64)
    for j in range(len(order)):
        i = order[j]
        x = values[i]
        at = of_class[i]
        if at == 0:
            step = min(np.int64(x / degree), highest)
            code = r + step
            low = float(step * degree)
            high = low + degree if step < highest else np.inf
        else:
            code = r - at + 1
            low = float(1 << (r - at))
            high = 2.0 * low
        g = group[i]
        with_low = error[g] + x - low
        with_high = error[g] + x - high
        # A tie goes to the lower value.
        if abs(with_high) < abs(with_low):
            codes[i] = code + 1
            error[g] = with_high
        else:
            codes[i] = code
            error[g] = with_low
    return codes


def check_degree(name: str, degree: object) -> None:
    """Refuse a degree of discretisation that is no power of two."""
    is_whole = isinstance(degree, int) and not isinstance(degree, bool)
    if not (is_whole and 1 <= degree <= MAX_DEGREE and degree & (degree - 1) == 0):  # type: ignore[operator]
        raise bad_argument(name, degree, f"a power of two from 1 to {MAX_DEGREE:,}")


def discretise(values: Floats, degree: int, group: Instances | None = None) -> Discretised:
    """The values with degree R; the running error is kept for every group by itself.

    >>> rounded = discretise(np.array([8.0, 6, 3, 2, 2, 1, 1, 1, 1, 1]), degree=4)
    >>> rounded.values.tolist()
    [8.0, 4.0, 4.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    """
    check_degree("degree", degree)
    largest = float(values.max(initial=0.0))
    if largest <= 0:
        return Discretised(np.zeros(len(values), np.int64), 1.0, degree)
    smallest = float(values.min())
    if smallest <= 0:
        smallest = float(values[values > 0].min())
    unit = max(smallest, largest / _LARGEST)
    scaled = values / unit
    if group is None:
        group = np.zeros(len(values), np.int64)
    groups = int(group.max()) + 1
    # ⌊max / R⌋, and at least 1: a representative for values that all are below R.
    highest = max(1, int(largest / unit // degree))
    codes: Codes = _rounded(
        scaled, scaled.view(np.uint64), degree, degree.bit_length() - 1, highest,
        group, groups,
    )  # fmt: skip
    return Discretised(codes, unit, degree)
