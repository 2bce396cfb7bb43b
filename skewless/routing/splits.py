"""Split keys: the rows of a key too hot for one instance are shared by a grid of several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from skewless.routing.route import Instances


@dataclass(frozen=True)
class Split:
    """A hot key whose rows are shared by several instances.

    The members are the cells of a grid with `lines` rows, in row-major order. Each row of the key
    has its home in one cell. To meet the other rows of its batch, a left row also visits the rest
    of its line, and a right row the rest of its column. With a single line, left rows visit all
    members and right rows only their home; with one member per line it is the other way round.
    """

    hash: int
    partition: int
    members: tuple[int, ...]
    lines: int

    @property
    def columns(self) -> int:
        return len(self.members) // self.lines

    def among(self, members: Sequence[int]) -> "Split":
        """The same key over other members, in a grid as much like this one as they allow."""
        count = len(members)

        def distortion(lines: int) -> float:
            tall, wide = lines * lines * self.columns, count * self.lines
            return max(tall, wide) / min(tall, wide)

        return replace(self, members=tuple(members), lines=min(divisors(count), key=distortion))

    def to_json(self) -> dict[str, Any]:
        return {
            "hash": self.hash,
            "partition": self.partition,
            "members": list(self.members),
            "lines": self.lines,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Split":
        return Split(record["hash"], record["partition"], tuple(record["members"]), record["lines"])


def replicas(
    left_rows: float, right_rows: float, lines: int | Instances, columns: int | Instances
) -> Any:
    """How many visits the rows of a split key make besides those at home.

    >>> replicas(100, 100, lines=4, columns=4), replicas(100, 100, lines=1, columns=16)
    (600, 1500)
    """
    return left_rows * (columns - 1) + right_rows * (lines - 1)


def divisors(count: int) -> list[int]:
    """The possible numbers of lines of a grid with this many cells.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    return [n for n in range(1, count + 1) if count % n == 0]
