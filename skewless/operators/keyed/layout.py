"""The columns of a keyed operator: as the user names them, on their way, and in the state."""

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from skewless.engine.columns import TIME, key_name, slot_name
from skewless.errors import bad_argument
from skewless.kernels.ordering import TimeArray

# The single side of the input, in reports and watermarks.
INPUT = "input"
# Segments of what user functions keep.
STATE = "state"
# The time column of a segment: when a stored row is due. An event time is kept beside it.
DUE = TIME
EVENT = "e"
# The moment at which state without a window is due: past every event time and every window's end.
FOREVER = 2**62


@dataclass(frozen=True)
class Layout:
    """The input's columns, which of them are keys, and which travel to the tasks.

    A task gets the hash `h`, the event time `t`, the keys `k0…` and the payload `p0…`, which is
    what the process needs of the rest.
    """

    schema: pa.Schema
    by: tuple[str, ...]
    time: str
    payload: tuple[str, ...]
    # The hash is one-to-one on the key's type: equal hash, equal key (but for null).
    hash_is_key: bool = False

    def __post_init__(self) -> None:
        if not self.by:
            raise bad_argument("by", list(self.by), "at least one column")
        for argument, names in (("by", self.by), ("time", (self.time,))):
            for name in names:
                if name not in self.schema.names:
                    raise bad_argument(argument, name, f"one of {self.schema.names}")
        if len(set(self.by)) < len(self.by):
            raise bad_argument("by", list(self.by), "each column once")
        if self.time in self.by:
            raise bad_argument("by", self.time, "columns other than the event time")
        kind = self.time_type
        if not pa.types.is_timestamp(kind) or kind.unit != "us":
            raise bad_argument("time", f"{self.time}: {kind}", "a timestamp in microseconds")

    @property
    def time_type(self) -> pa.DataType:
        return self.schema.field(self.time).type

    @property
    def window_type(self) -> pa.DataType:
        return pa.struct([("start", self.time_type), ("end", self.time_type)])

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return tuple(key_name(i) for i in range(len(self.by)))

    @cached_property
    def sources(self) -> dict[str, str]:
        """Input column → column on its way, for those that travel."""
        return {
            **{name: slot_name(i) for i, name in enumerate(self.payload)},
            **dict(zip(self.by, self.keys, strict=True)),
            self.time: TIME,
        }

    @cached_property
    def travelling(self) -> pa.Schema:
        """What a task takes in, but for the hash, under its short names."""
        names = (self.time, *self.by, *self.payload)
        return pa.schema([(self.sources[n], self.schema.field(n).type) for n in names])

    def with_all_columns(self) -> "Layout":
        """The same, with all columns of the input on their way."""
        named = (*self.by, self.time)
        return replace(self, payload=tuple(n for n in self.schema.names if n not in named))

    def as_input(self, columns: pa.RecordBatch) -> pa.RecordBatch:
        """Travelling rows under the names that their user knows, in the order of the input."""
        names = [name for name in self.schema.names if name in self.sources]
        return pa.RecordBatch.from_arrays(
            [columns.column(self.sources[name]) for name in names], names=names
        )

    @property
    def key_fields(self) -> list[pa.Field]:
        named = zip(self.keys, self.by, strict=True)
        return [pa.field(key, self.schema.field(name).type) for key, name in named]


def windows_column(starts_us: TimeArray, ends_us: TimeArray, layout: Layout) -> pa.Array:
    """struct<start, end>, in the type of the event time."""
    columns = [pa.array(c).view(layout.time_type) for c in (starts_us, ends_us)]
    return pa.StructArray.from_arrays(columns, fields=list(layout.window_type))
