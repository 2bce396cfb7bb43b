"""Finds the heavy keys of a task, exactly within every piece that it is given."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.load.report import HotKeyLoad


@dataclass(frozen=True)
class Detail:
    """Which keys a task reports by themselves: those with `share` of its rows or matches.

    A sketch would bound the memory of a stream; a sorted batch gives exact counts for less.
    """

    share: float
    most: int


# Keys that are too large for one instance, or nearly so.
STANDING_OUT = Detail(share=0.01, most=64)
# Keys worth an entry in a key table; lighter keys even out by themselves.
EVERY_KEY_THAT_COUNTS = Detail(share=0.0005, most=1_500)


class KeyLoads:
    """Rows and matches of the keys of one task that stand out."""

    def __init__(self, detail: Detail = STANDING_OUT) -> None:
        self._detail = detail
        self._rows: dict[str, list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]]] = {}
        self._matches: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]] = []

    def add_rows(
        self, side: str, keys: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]
    ) -> None:
        """How many rows of a side the keys have, each key once."""
        self._rows.setdefault(side, []).append(self._heavy(keys, rows))

    def add_matches(self, keys: npt.NDArray[np.uint64], matches: npt.NDArray[np.int64]) -> None:
        """How many matches the keys have, each key once."""
        self._matches.append(self._heavy(keys, matches))

    def _heavy(
        self, keys: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """The keys whose weight is large enough a share of all."""
        stands_out = weights >= max(2.0, self._detail.share * float(weights.sum()))
        return keys[stands_out], weights[stands_out]

    def heaviest(self) -> list[HotKeyLoad]:
        """The keys that stand out in rows or matches, heaviest first."""
        rows = {side: _summed(found) for side, found in self._rows.items()}
        matches = _summed(self._matches)
        hashes = set(matches).union(*rows.values())
        loads = [
            HotKeyLoad(h, {side: of[h] for side, of in rows.items() if h in of}, matches.get(h, 0))
            for h in hashes
        ]
        loads.sort(key=lambda k: (-(sum(k.rows.values()) + k.matches), k.hash))
        return loads[: self._detail.most]


def _summed(
    found: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]],
) -> dict[int, int]:
    total: dict[int, int] = {}
    for hashes, sums in found:
        for h, n in zip(hashes.tolist(), sums.tolist(), strict=True):
            total[h] = total.get(h, 0) + n
    return total
