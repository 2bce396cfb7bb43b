"""What a planner proposes, and the one place where a proposal is checked before it is enacted."""

from dataclasses import dataclass

from skewless.routing.partitions import PartitionTable


@dataclass(frozen=True)
class Move:
    """A partition goes from one instance to another."""

    partition: int
    source: int
    target: int


@dataclass(frozen=True)
class Split:
    """A hot key whose rows are shared by several instances; `replicated` is the side whose rows of
    the current batch go to all of them."""

    hash: int
    partition: int
    members: tuple[int, ...]
    replicated: str


@dataclass(frozen=True)
class Plan:
    """The complete next routing: a table, the keys that are split, and why.

    Doing nothing is a plan too: the same table and splits, with the reason.
    """

    table: PartitionTable
    moves: tuple[Move, ...]
    splits: tuple[Split, ...]
    reason: str
    imbalance_before: float
    imbalance_after: float
    moved_rows: float
