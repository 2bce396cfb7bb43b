"""The writer of a Skewless stream: the members of Spark's DataStreamWriter."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from skewless.durations import parse_duration_us, shown_duration
from skewless.errors import SkewlessError, bad_argument, check_parameters
from skewless.runtime.folders import default_checkpoint
from skewless.runtime.formats import Format
from skewless.runtime.inputs import is_case_sensitive
from skewless.runtime.launch import Launch
from skewless.runtime.options import WriterOptions
from skewless.runtime.query import Query
from skewless.runtime.refusals import refuse_without_batches
from skewless.runtime.sinks import TEMPORARY_CHECKPOINT, FunctionSink, Sink
from skewless.runtime.tables import TableSink, table_sink
from skewless.runtime.topology import Topology, triggered, with_whole_rows
from skewless.runtime.workers import require_able_workers

if TYPE_CHECKING:
    from skewless.runtime.stream import Stream

_DEFAULT_MODE = "append"  # as in Spark


class StreamWriter:
    """Set the options, then start.

    Options of its own, besides the format's: `checkpointLocation`, `path`, `badRows` ("fail" or
    "drop"), `deadLetterPath` (where late and bad rows go), `stateLocation` (where the state goes;
    by default below the checkpoint).
    """

    def __init__(self, stream: "Stream") -> None:
        self._stream = stream
        self._format = "parquet"
        self._says_format = False
        self._options = WriterOptions()
        self._query_name: str | None = None
        self._trigger: dict[str, Any] = {}
        self._interval_us: int | None = None
        self._function: Callable[[DataFrame, int], None] | None = None
        self._partition_by: tuple[str, ...] = ()
        self._output_mode: str | None = None

    def format(self, source: str) -> "StreamWriter":
        if not isinstance(source, str) or not source:
            raise bad_argument("format", source, "the name of a format, such as 'parquet'")
        self._format = source
        self._says_format = True
        self._function = None  # as in Spark, the last of format and foreachBatch is meant
        return self

    def option(self, key: str, value: Any) -> "StreamWriter":
        """Sets an option; None takes it back."""
        if not isinstance(key, str):
            raise bad_argument("option", key, "the name of an option")
        self._options.put(key, value)
        return self

    def options(self, **options: Any) -> "StreamWriter":
        for key, value in options.items():
            self.option(key, value)
        return self

    def outputMode(self, outputMode: str) -> "StreamWriter":  # noqa: N802 - Spark's names
        mode = str(outputMode).lower()
        modes = self._stream.node.modes
        if mode not in modes:
            takes = " or ".join(repr(m) for m in modes)
            raise bad_argument("outputMode", outputMode, f"{takes}: what the operator can give")
        self._output_mode = mode
        return self

    def partitionBy(self, *cols: str | list[str]) -> "StreamWriter":  # noqa: N802 - Spark's name
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        columns = self._stream.columns
        fold = str if is_case_sensitive(self._stream.session) else str.lower
        known = {fold(column): column for column in columns}
        for name in names:
            if not isinstance(name, str) or fold(name) not in known:
                raise bad_argument("partitionBy", name, f"one of {columns}")
        self._partition_by = tuple(known[fold(str(name))] for name in names)
        if len(set(self._partition_by)) == len(columns):
            raise bad_argument("partitionBy", list(names), "not all columns: one must be left")
        return self

    def queryName(self, queryName: str) -> "StreamWriter":  # noqa: N802 - Spark's names
        if not isinstance(queryName, str) or not queryName.strip():
            raise bad_argument("queryName", queryName, "a text that is not empty")
        self._query_name = queryName
        return self

    def trigger(
        self,
        *,
        processingTime: str | None = None,
        once: bool | None = None,
        availableNow: bool | None = None,
        continuous: str | None = None,
        realTime: str | None = None,
    ) -> "StreamWriter":
        refuse_without_batches({"continuous": continuous, "realTime": realTime})
        given: dict[str, Any] = {
            name: value
            for name, value in (
                ("processingTime", processingTime),
                ("once", once),
                ("availableNow", availableNow),
            )
            if value is not None
        }
        takes = "one of processingTime='1 second', once=True, availableNow=True"
        if len(given) != 1 or False in (once, availableNow):
            raise bad_argument("trigger", given, takes)
        self._interval_us = None
        if processingTime is not None:
            interval_us = parse_duration_us("processingTime", processingTime)
            if interval_us < 0:
                takes = "a duration that is not below 0"
                raise bad_argument("processingTime", processingTime, takes)
            # Spark's trigger knows fewer spellings than we do.
            given["processingTime"] = shown_duration(interval_us)
            self._interval_us = interval_us
        self._trigger = given
        return self

    def foreachBatch(self, func: Callable[[DataFrame, int], None]) -> "StreamWriter":  # noqa: N802
        if not callable(func):
            raise bad_argument("foreachBatch", func, "a function of (DataFrame, batch id)")
        check_parameters("foreachBatch", func, 2, "a function of (DataFrame, batch id)")
        self._format = "foreachBatch"
        self._function = func
        return self

    def foreach(self, f: Any) -> "StreamWriter":
        """Not offered: says what to use instead."""
        raise SkewlessError(
            "foreach: not offered; use .foreachBatch(lambda df, batch_id: df.foreach(f)), which "
            "calls f for every row of a batch in the workers"
        )

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: str | list[str] | None = None,
        queryName: str | None = None,
        **options: Any,
    ) -> Query:
        """Starts the query; every mistake that can be found without running is found here."""
        self._set(format, outputMode, partitionBy, queryName, options)
        if path is not None:
            self.option("path", path)
        return self._start(self._sink)

    def toTable(  # noqa: N802 - Spark's names
        self,
        tableName: str,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: str | list[str] | None = None,
        queryName: str | None = None,
        **options: Any,
    ) -> Query:
        """Starts the query; every batch is appended to a table, which is created if need be.

        A replayed batch is not appended again where the table is Delta's; see docs/semantics.md.
        """
        self._set(format, outputMode, partitionBy, queryName, options)
        return self._start(partial(self._table_sink, tableName))

    def _set(
        self,
        source: str | None,
        mode: str | None,
        partition_by: str | list[str] | None,
        name: str | None,
        options: dict[str, Any],
    ) -> None:
        self.options(**options)
        if mode is not None:
            self.outputMode(mode)
        if partition_by is not None:
            self.partitionBy(partition_by)
        if source is not None:
            self.format(source)
        if name is not None:
            self.queryName(name)

    def _start(self, sink_at: Callable[[str | None], Sink]) -> Query:
        stream = self._stream
        own = self._options.own()
        sink = sink_at(own.path)
        last = stream.node if own.dead_letter_path is None else with_whole_rows(stream.node)
        last = triggered(last, self._interval_us)
        # The last operator in the output mode of the query; those before it append.
        topology = Topology.of(last.in_mode(self._output_mode or _DEFAULT_MODE))
        checkpoint = own.checkpoint_location or self._default_checkpoint(sink)
        own.check()
        require_able_workers(stream.session)
        launch = Launch(stream, topology, sink, own, self._trigger, self._query_name)
        return launch.start(checkpoint)

    def _sink(self, path: str | None) -> Sink:
        if self._function is not None:
            return FunctionSink(self._function)
        chosen = Format(self._format, self._options.of_format(), self._partition_by)
        return chosen.sink(self._stream, path, self._query_name)

    def _table_sink(self, name: str, path: str | None) -> Sink:
        return table_sink(
            name,
            self._stream.session,
            self._stream.schema,
            source=self._format if self._says_format or self._function is not None else None,
            path=path,
            partition_by=self._partition_by,
            options=self._options.of_format(),
        )

    def _default_checkpoint(self, sink: Sink) -> str | None:
        """Where the query lives; None: nobody will ask for it after its end."""
        default = default_checkpoint(self._stream.session, self._query_name)
        is_table = isinstance(sink, TableSink)
        is_temporary = not is_table and self._format.lower() in TEMPORARY_CHECKPOINT
        if default is not None or is_temporary:
            return default
        raise SkewlessError(
            "checkpointLocation: missing; call .option('checkpointLocation', path) with a folder "
            "that outlives the query"
        )
