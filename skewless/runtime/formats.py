"""From the name of a format to its sink; what a sink needs is checked before anything starts."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skewless.errors import SkewlessError, bad_argument
from skewless.runtime.folders import placed
from skewless.runtime.refusals import (
    refuse_more_than_a_text,
    refuse_nested_columns,
    refuse_sparks_own,
    refuse_unknown_format,
)
from skewless.runtime.sinks import (
    BATCH_COLUMN,
    FILE_FORMATS,
    NOOP,
    ConsoleSink,
    FileSink,
    FormatSink,
    MemorySink,
    NoSink,
    Sink,
)

if TYPE_CHECKING:
    from skewless.runtime.stream import Stream

_IDENTIFIER = re.compile(r"\w+")
_MOST_ROWS = 2**31 - 1  # Java's largest number of rows to print


@dataclass(frozen=True)
class Format:
    """A format by its name, with the options and the columns that its files are cut by."""

    name: str
    options: dict[str, str]
    partition_by: tuple[str, ...]

    def sink(self, stream: "Stream", path: str | None, query_name: str | None) -> Sink:
        """Where the result of the stream goes."""
        name = self.name.lower()
        if name == "memory":
            return _memory(stream, query_name)
        if name == "console":
            return _console({key.lower(): value for key, value in self.options.items()})
        if name == NOOP:
            return NoSink()
        if name in FILE_FORMATS:
            return self._files(name, stream, path)
        refuse_unknown_format(self.name, stream.session)
        return FormatSink(self.name, path, self.options, self.partition_by)

    def _files(self, name: str, stream: "Stream", path: str | None) -> FileSink:
        if path is None:
            raise SkewlessError(
                f"path: the {name} sink needs one; call .start(path) or .option('path', path)"
            )
        if BATCH_COLUMN in [c.lower() for c in stream.columns]:
            raise SkewlessError(
                f"path: the result has a column {BATCH_COLUMN!r}, which is the name of the "
                "folders of a file sink; rename the column with .transform(...)"
            )
        if name == "csv":
            refuse_nested_columns(stream.schema)
        if name == "text":
            refuse_more_than_a_text(stream.schema, self.partition_by)
        refuse_unknown_format(name, stream.session)
        path = placed("path", path, stream.session)
        refuse_sparks_own(path)
        return FileSink(name, path, self.options, self.partition_by)


def _memory(stream: "Stream", query_name: str | None) -> MemorySink:
    if query_name is None:
        raise SkewlessError(
            "queryName: the memory sink needs one; it names the view that holds the result"
        )
    if not _IDENTIFIER.fullmatch(query_name):
        takes = "letters, digits and _ alone for the memory sink: it is the name of a view"
        raise bad_argument("queryName", query_name, takes)
    return MemorySink(query_name, stream.session, stream.schema)


def _console(options: dict[str, str]) -> ConsoleSink:
    rows, truncate = options.get("numrows", "20"), options.get("truncate", "true")
    if not rows.isdecimal() or int(rows) > _MOST_ROWS:
        raise bad_argument("numRows", rows, f"a whole number from 0 to {_MOST_ROWS}")
    if truncate.lower() not in ("true", "false"):
        raise bad_argument("truncate", truncate, "true or false")
    return ConsoleSink(int(rows), truncate.lower() == "true")
