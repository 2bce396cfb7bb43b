"""How the rows of both sides share one set of columns on their way to the tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from skewless.engine.columns import TIME, key_name


@dataclass(frozen=True)
class OutputColumn:
    """Where an output column comes from: which side's row, and which column of it."""

    name: str
    side: str
    column: str


@dataclass(frozen=True)
class Layout:
    """The columns that a joined pair is made of.

    Payload columns live in slots: a slot has one type and serves a column of either side, so a row
    carries as many slots as the wider side needs and not the columns of both.
    """

    keys: int
    left_slots: tuple[str, ...]
    right_slots: tuple[str, ...]
    output: tuple[OutputColumn, ...]
    # The hash is one-to-one on the key's type (see hashes_one_to_one): equal hash, equal key.
    hash_is_key: bool
    # The hash does not travel: it is made from the one key, a whole number, when the row arrives.
    hash_from_key: bool = False
    # Columns that are stored, too, because the condition of the join is about them.
    compared: tuple[str, ...] = ()
    # The name of an output column for the distance of a pair, behind all others.
    distance: str | None = None
    # The types of the output columns, where rows may be given without a match: the columns of the
    # other side are null then.
    types: tuple[pa.DataType, ...] = ()
    # Per side: (column of the input, where it travels), for messages and for rows that are dropped.
    inputs: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    # Per side: the column that says what a row is worth, where shedding asks for it.
    values: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def key_columns(self) -> tuple[str, ...]:
        return tuple(key_name(i) for i in range(self.keys))

    def as_input(self, side: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a side under the names that its user knows."""
        columns = dict(self.inputs[side])
        return pa.RecordBatch.from_arrays(
            [rows.column(c) for c in columns.values()], names=list(columns)
        )

    def is_key(self, column: OutputColumn) -> bool:
        """Whether an output column is a key, which rows of both sides have."""
        return column.column in self.key_columns

    def stored_columns(self, side: str) -> tuple[str, ...]:
        """What is kept of a row of this side."""
        slots = self.left_slots if side == "left" else self.right_slots
        return (TIME, *self.key_columns, *slots, *self.compared)
