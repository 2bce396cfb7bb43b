"""Dead letters: late and bad rows, written as parquet for somebody to look at, exactly once."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from skewless.engine.chunks import Limits, bounded
from skewless.engine.columns import INSTANCE
from skewless.runtime.dispatch import run_emission
from skewless.runtime.sinks import BATCH_COLUMN, FileSink
from skewless.runtime.topology import Topology
from skewless.runtime.types import arrow_schema
from skewless.state.dropped import REASON, ROW, DroppedFile, read_dropped
from skewless.state.storage import Storage

_OPERATOR, _INPUT = "operator", "input"
_OURS = T.StructType(
    [
        T.StructField(REASON, T.StringType()),
        T.StructField(_OPERATOR, T.IntegerType()),
        T.StructField(_INPUT, T.StringType()),
    ]
)
# (operator, side) → column of the input → column of the dead letters.
Places = Mapping[tuple[int, str], Mapping[str, str]]


def dead_letter_columns(topology: Topology) -> tuple[T.StructType, Places]:
    """One schema for the rows of all inputs, and where the columns of each input go.

    Columns of equal name and type are shared. A column whose name is taken gets the name of its
    input as a suffix, and if that is taken, too, the number of the operator.
    """
    taken: dict[str, T.StructField | None] = {BATCH_COLUMN: None, **dict.fromkeys(_OURS.names)}
    fields = list(_OURS.fields)
    places: dict[tuple[int, str], dict[str, str]] = {}
    for number, node in enumerate(topology.nodes):
        for side, schema in node.inputs.items():
            place = places.setdefault((number, side), {})
            for column in schema.fields:
                kind = column.dataType
                if isinstance(kind, T.NullType):
                    kind = T.StringType()  # parquet has no column without a type
                own = T.StructField(column.name, kind)
                shared = _shared(own, (side, f"{side}_{number}"), taken, set(place.values()))
                if shared.name.lower() not in taken:
                    fields.append(shared)
                    taken[shared.name.lower()] = shared
                place[column.name] = shared.name
    return T.StructType(fields), places


def _shared(
    own: T.StructField,
    suffixes: Sequence[str],
    taken: Mapping[str, T.StructField | None],
    used: Collection[str],
) -> T.StructField:
    """The field for a column of an input: one that is there already, or a new one.

    Names are told apart as Spark does, whatever their case. No two columns of an input share one.
    """
    names = [own.name, *(f"{own.name}_{suffix}" for suffix in suffixes)]
    while True:
        for name in names:
            found = taken.get(name.lower())
            if name.lower() not in taken:
                return T.StructField(name, own.dataType)
            if found is not None and found.dataType == own.dataType and found.name not in used:
                return found
        names = [f"{names[-1]}_"]


@dataclass(frozen=True)
class _Reading:
    """Reads files of dropped rows in Python workers: its share for each row of its input."""

    storage: Storage
    files: tuple[tuple[int, DroppedFile], ...]
    shares: int
    places: Places
    schema: pa.Schema

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(INSTANCE).to_pylist():
                for operator, file in self.files[number :: self.shares]:
                    for stored in bounded(read_dropped(self.storage, file), Limits()):
                        yield self._letters(operator, file, stored)

    def _letters(self, operator: int, file: DroppedFile, stored: pa.RecordBatch) -> pa.RecordBatch:
        count = stored.num_rows
        columns = {
            REASON: stored.column(REASON),
            _OPERATOR: pa.repeat(pa.scalar(operator, pa.int32()), count),
            _INPUT: pa.repeat(pa.scalar(file.side), count),
        }
        rows = stored.column(ROW)
        place = self.places[operator, file.side]
        columns.update({place[f.name]: rows.field(i) for i, f in enumerate(rows.type)})
        return pa.RecordBatch.from_arrays(
            [
                columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type)
                for f in self.schema
            ],
            schema=self.schema,
        )


@dataclass
class DeadLetters:
    """A folder `batch=<id>` for every batch that drops rows, replaced when it is replayed."""

    path: str
    storage: Storage
    topology: Topology
    cores: int
    _started: bool = field(default=False, init=False)

    def write(
        self, session: SparkSession, files: Sequence[tuple[int, DroppedFile]], batch: int
    ) -> None:
        """Writes the rows of a batch, before its commit.

        The first batch of a run may be a replay. It is written even if it drops nothing, because it
        may have dropped something the last time, with another watermark.
        """
        if files or not self._started:
            FileSink("parquet", self.path, {}).write(self._letters(session, files), batch)
        self._started = True

    def _letters(
        self, session: SparkSession, files: Sequence[tuple[int, DroppedFile]]
    ) -> DataFrame:
        schema, places = dead_letter_columns(self.topology)
        if not files:
            return session.createDataFrame([], schema)
        shares = min(len(files), self.cores)
        reading = _Reading(self.storage, tuple(files), shares, places, arrow_schema(schema))
        return run_emission(session, reading, shares, schema)
