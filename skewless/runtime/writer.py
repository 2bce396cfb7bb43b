"""The writer of a Skewless stream: the members of Spark's DataStreamWriter."""

import re
import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from skewless.durations import parse_duration_us, shown_duration
from skewless.engine.engine import Engine
from skewless.errors import SkewlessError, bad_argument, check_parameters
from skewless.runtime.claim import Claim
from skewless.runtime.deadletters import DeadLetters
from skewless.runtime.history import History, discard, temporary_checkpoint
from skewless.runtime.inputs import is_case_sensitive
from skewless.runtime.query import Query
from skewless.runtime.refusals import (
    refuse_foreign_progress,
    refuse_more_than_a_text,
    refuse_nested_columns,
    refuse_nested_folders,
    refuse_sparks_own,
    refuse_unknown_format,
    refuse_without_batches,
)
from skewless.runtime.sinks import (
    BATCH_COLUMN,
    FILE_FORMATS,
    TEMPORARY_CHECKPOINT,
    ConsoleSink,
    FileSink,
    FormatSink,
    FunctionSink,
    MemorySink,
    Sink,
)
from skewless.runtime.step import Step
from skewless.runtime.tables import TableSink, table_sink
from skewless.runtime.topology import Topology, triggered, with_whole_rows
from skewless.runtime.workers import is_local, require_able_workers
from skewless.state.commit import CommitLog
from skewless.state.faults import Faults
from skewless.state.location import check_shared
from skewless.state.lock import DirectoryLock
from skewless.state.naming import is_plain_name
from skewless.state.storage import StateError, Storage

if TYPE_CHECKING:
    from skewless.runtime.stream import Stream

_BAD_ROWS = ("fail", "drop")
_OWN_OPTIONS = (
    "checkpointlocation",
    "path",
    "badrows",
    "deadletterpath",
    "statelocation",
    "skewless.faults",
)
_STATE_FOLDER = "skewless"
_DEFAULT_MODE = "append"  # as in Spark
_IDENTIFIER = re.compile(r"\w+")
_MOST_ROWS = 2**31 - 1  # Java's largest number of rows to print


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
        self._options: dict[str, str] = {}
        self._names: dict[str, str] = {}  # option names are case-insensitive, as in Spark
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
        self._options.pop(self._names.pop(key.lower(), key), None)
        if value is not None:
            self._names[key.lower()] = key
            self._options[key] = str(value).lower() if isinstance(value, bool) else str(value)
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
        own = self._own_options()
        sink = sink_at(own["path"])
        dead_letter_path = own["deadletterpath"]
        last = stream.node if dead_letter_path is None else with_whole_rows(stream.node)
        last = triggered(last, self._interval_us)
        # The last operator in the output mode of the query; those before it append.
        topology = Topology.of(last.in_mode(self._output_mode or _DEFAULT_MODE))
        lasting = self._checkpoint(own["checkpointlocation"], sink)
        bad_rows = own["badrows"] or "fail"
        if bad_rows not in _BAD_ROWS:
            raise bad_argument("badRows", bad_rows, "'fail' or 'drop'")
        require_able_workers(stream.session)
        if lasting is not None:
            return self._run(sink, topology, own, lasting, None)
        temporary = temporary_checkpoint()
        try:
            return self._run(sink, topology, own, temporary, temporary)
        except BaseException:
            discard(temporary)
            raise

    def _run(
        self,
        sink: Sink,
        topology: Topology,
        own: dict[str, str | None],
        location: str,
        temporary: str | None,
    ) -> Query:
        """Starts a query in a checkpoint, which goes with the query if it is temporary."""
        stream, dead_letter_path = self._stream, own["deadletterpath"]
        checkpoint = self._placed("checkpointLocation", location)
        state = own["statelocation"] or f"{checkpoint.rstrip('/')}/{_STATE_FOLDER}"
        storage = Storage(state).absolute()
        folders = {"checkpointLocation": checkpoint, "stateLocation": state}
        if isinstance(sink, FileSink):
            refuse_nested_folders("path", sink.path, folders)
            folders["path"] = sink.path
        if dead_letter_path is not None:
            dead_letter_path = self._placed("deadLetterPath", dead_letter_path)
            refuse_nested_folders("deadLetterPath", dead_letter_path, folders)
        refuse_foreign_progress(checkpoint, storage)
        claims = [
            Claim(option, folder, checkpoint, storage)
            for option, folder in (
                ("path", sink.path if isinstance(sink, FileSink) else None),
                ("deadLetterPath", dead_letter_path),
            )
            if folder is not None
        ]
        for claim in claims:
            claim.check()
        engine = Engine(
            storage=storage,
            operators=topology.operators,
            upstream=topology.upstream,
            cores=stream.cores(),
            drop_bad_rows=own["badrows"] == "drop",
            keep_dropped=dead_letter_path is not None,
            faults=Faults.parse(own["skewless.faults"] or "[]"),
        )
        try:
            storage.make_directory("")
        except StateError as failure:
            option = "stateLocation" if own["statelocation"] else "checkpointLocation"
            raise SkewlessError(f"{option}: {failure}") from failure
        lock = DirectoryLock(storage, self._query_name or "unnamed")
        try:
            engine.open()
            for claim in claims:
                claim.hold()
            if isinstance(sink, TableSink):
                sink = sink.opened(stream.session, storage)
            letters = None
            if dead_letter_path is not None:
                letters = DeadLetters(dead_letter_path, storage, topology, engine.cores)
            step = Step(engine, sink, topology, letters)
            writer = topology.stream().writeStream.foreachBatch(step)
            writer = writer.option("checkpointLocation", checkpoint)
            if self._trigger:
                writer = writer.trigger(**self._trigger)
            if self._query_name:
                writer = writer.queryName(self._query_name)
            query = writer.start()
        except BaseException:
            lock.release()
            raise
        if isinstance(sink, MemorySink):
            sink.publish()  # not before: the view of another query may have the name
        return Query(query, History(CommitLog(storage), temporary), lock)

    def _own_options(self) -> dict[str, str | None]:
        """The options that are ours; the rest belongs to the format."""
        own: dict[str, str | None] = {}
        for name in _OWN_OPTIONS:
            written = self._names.get(name)
            own[name] = None if written is None else self._options.get(written)
            if own[name] == "":
                raise bad_argument(str(written), "", "text that is not empty")
        return own

    def _format_options(self) -> dict[str, str]:
        return {k: v for k, v in self._options.items() if k.lower() not in _OWN_OPTIONS}

    def _sink(self, path: str | None) -> Sink:
        options = self._format_options()
        name = self._format.lower()
        if self._function is not None:
            return FunctionSink(self._function)
        if name == "memory":
            if self._query_name is None:
                raise SkewlessError(
                    "queryName: the memory sink needs one; it names the view that holds the result"
                )
            if not _IDENTIFIER.fullmatch(self._query_name):
                takes = "letters, digits and _ alone for the memory sink: it is the name of a view"
                raise bad_argument("queryName", self._query_name, takes)
            return MemorySink(self._query_name, self._stream.session, self._stream.schema)
        if name == "console":
            return _console({k.lower(): v for k, v in options.items()})
        if name in FILE_FORMATS:
            if path is None:
                raise SkewlessError(
                    f"path: the {name} sink needs one; call .start(path) or .option('path', path)"
                )
            if BATCH_COLUMN in [c.lower() for c in self._stream.columns]:
                raise SkewlessError(
                    f"path: the result has a column {BATCH_COLUMN!r}, which is the name of the "
                    "folders of a file sink; rename the column with .transform(...)"
                )
            if name == "csv":
                refuse_nested_columns(self._stream.schema)
            if name == "text":
                refuse_more_than_a_text(self._stream.schema, self._partition_by)
            refuse_unknown_format(name, self._stream.session)
            path = self._placed("path", path)
            refuse_sparks_own(path)
            return FileSink(name, path, options, self._partition_by)
        refuse_unknown_format(self._format, self._stream.session)
        return FormatSink(self._format, path, options, self._partition_by)

    def _placed(self, option: str, path: str) -> str:
        """The same folder for Spark and for us: Java may have been started in another one.

        On a cluster a relative path is relative to whatever its file system says.
        """
        check_shared(option, path)
        return Storage(path).absolute().uri if is_local(self._stream.session) else path

    def _table_sink(self, name: str, path: str | None) -> Sink:
        return table_sink(
            name,
            self._stream.session,
            self._stream.schema,
            source=self._format if self._says_format or self._function is not None else None,
            path=path,
            partition_by=self._partition_by,
            options=self._format_options(),
        )

    def _checkpoint(self, given: str | None, sink: Sink) -> str | None:
        """Where the query lives; None: nobody will ask for it after its end."""
        if given is not None:
            return given
        default = self._stream.session.conf.get("spark.sql.streaming.checkpointLocation", None)
        if default:
            folder = self._query_name or uuid.uuid4().hex
            if not is_plain_name(folder):
                takes = (
                    r"a name without / and \ that is not '..': it is the name of the folder below "
                    "spark.sql.streaming.checkpointLocation; or set the option checkpointLocation"
                )
                raise bad_argument("queryName", folder, takes)
            return f"{default.rstrip('/')}/{folder}"
        is_table = isinstance(sink, TableSink)
        if not is_table and self._format.lower() in TEMPORARY_CHECKPOINT:
            return None
        raise SkewlessError(
            "checkpointLocation: missing; call .option('checkpointLocation', path) with a folder "
            "that outlives the query"
        )


def _console(options: dict[str, str]) -> ConsoleSink:
    rows, truncate = options.get("numrows", "20"), options.get("truncate", "true")
    if not rows.isdecimal() or int(rows) > _MOST_ROWS:
        raise bad_argument("numRows", rows, f"a whole number from 0 to {_MOST_ROWS}")
    if truncate.lower() not in ("true", "false"):
        raise bad_argument("truncate", truncate, "true or false")
    return ConsoleSink(int(rows), truncate.lower() == "true")
