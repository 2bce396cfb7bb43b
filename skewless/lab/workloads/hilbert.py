"""The Hilbert curve: a one-dimensional cell number that keeps neighbours in the plane together."""

import numpy as np
import numpy.typing as npt

MAX_ORDER = 31  # 2 * 31 bits still fit into a signed 64-bit cell number


def _check_order(order: int) -> None:
    if not 1 <= order <= MAX_ORDER:
        raise ValueError(f"order must be between 1 and {MAX_ORDER}, got {order}")


def index(x: npt.ArrayLike, y: npt.ArrayLike, order: int) -> npt.NDArray[np.int64]:
    """The position along the curve of each grid cell (x, y), on a grid of 2^order by 2^order.

    >>> index([0, 0, 1, 1], [0, 1, 1, 0], order=1)
    array([0, 1, 2, 3])
    """
    _check_order(order)
    cx = np.array(x, dtype=np.int64)
    cy = np.array(y, dtype=np.int64)
    side = np.int64(1) << order
    for name, values in (("x", cx), ("y", cy)):
        if values.size and (values.min() < 0 or values.max() >= side):
            raise ValueError(f"{name} must be in [0, {side}), got {values.min()}..{values.max()}")
    distance = np.zeros(np.broadcast(cx, cy).shape, dtype=np.int64)
    s = side >> 1
    while s:
        rx = (cx & s) > 0
        ry = (cy & s) > 0
        distance += s * s * ((3 * rx) ^ ry)
        cx, cy = _turn(cx, cy, rx, ry, side)
        s >>= 1
    return distance


def point(
    distance: npt.ArrayLike, order: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The grid cell (x, y) of each position along the curve: the inverse of `index`."""
    _check_order(order)
    rest = np.array(distance, dtype=np.int64)
    side = np.int64(1) << order
    if rest.size and (rest.min() < 0 or rest.max() >= side * side):
        raise ValueError(f"distance must be in [0, {side * side}), got {rest.min()}..{rest.max()}")
    x = np.zeros_like(rest)
    y = np.zeros_like(rest)
    s = np.int64(1)
    while s < side:
        rx = (rest & 2) > 0
        ry = ((rest ^ rx) & 1) > 0
        x, y = _turn(x, y, rx, ry, s)
        x += s * rx
        y += s * ry
        rest >>= 2
        s <<= 1
    return x, y


def _turn(
    x: npt.NDArray[np.int64],
    y: npt.NDArray[np.int64],
    rx: npt.NDArray[np.bool_],
    ry: npt.NDArray[np.bool_],
    side: np.int64,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rotate and flip a quadrant so that the curve through it continues its neighbour's."""
    flip = rx & ~ry
    fx = np.where(flip, side - 1 - x, x)
    fy = np.where(flip, side - 1 - y, y)
    return np.where(ry, fx, fy), np.where(ry, fy, fx)
