"""What a writer refuses before anything is started, and why."""

import os
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from skewless.errors import SkewlessError, bad_argument
from skewless.runtime.sinks import FILE_FORMATS
from skewless.state.commit import CheckpointError, CommitLog
from skewless.state.storage import StateError, Storage

_SPARKS_COMMITS = "commits"
_NOT_FOUND = re.compile(r"\[\w*DATA_SOURCE_NOT_(FOUND|ENABLED)\]")


def refuse_unknown_format(name: str, session: SparkSession) -> None:
    """Asks Spark for a reader, which is not run; any other complaint is for the format to make."""
    try:
        session.read.format(name).schema("found boolean").load()
    except Exception as error:  # Spark's, or that of the bridge to Java, which Spark does not wrap
        if _NOT_FOUND.search(str(error)):
            known = ", ".join(sorted(FILE_FORMATS - {"avro"} | {"console", "memory", "noop"}))
            takes = f"{known}, or any other batch format of Spark whose package is installed"
            raise bad_argument("format", name, takes) from error


def refuse_without_batches(given: dict[str, str | None]) -> None:
    """Refuses the triggers of Spark under which there are no micro-batches."""
    for name, value in given.items():
        if value is not None:
            raise SkewlessError(
                f"trigger: {name}={value!r} is not offered, because operators work on "
                "micro-batches; use trigger(processingTime='0 seconds'), which starts the next "
                "batch as soon as the last one is done"
            )


def refuse_nested_columns(schema: T.StructType) -> None:
    for field in schema.fields:
        if isinstance(field.dataType, T.StructType | T.ArrayType | T.MapType | T.VariantType):
            raise SkewlessError(
                f"format: csv cannot hold the column {field.name!r} of type "
                f"{field.dataType.simpleString()}; choose 'parquet' or 'json', or flatten it with "
                ".transform(...)"
            )


def refuse_more_than_a_text(schema: T.StructType, partition_by: Sequence[str]) -> None:
    left = [f for f in schema.fields if f.name not in partition_by]
    if [f.dataType.typeName() for f in left] != ["string"]:
        told = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in left)
        raise SkewlessError(
            f"format: text takes a single column of type string, and the result has {told}; "
            "choose another format, or make one column with .transform(...)"
        )


def refuse_foreign_progress(checkpoint: str, storage: Storage) -> None:
    """Refuses a checkpoint in which Spark has finished batches and Skewless has none."""
    if CommitLog(storage).batches():
        return
    try:
        finished = [int(n) for n in Storage(checkpoint).list(_SPARKS_COMMITS) if n.isdecimal()]
    except StateError:  # a filesystem that only Spark knows: the first batch will tell
        return
    if finished:
        raise CheckpointError(
            f"checkpointLocation: in {checkpoint} Spark has finished batch {max(finished)}, but "
            f"{storage.uri} has no commit of Skewless: it is the checkpoint of a query of Spark's "
            "own, which cannot be taken over, or the state was removed or is elsewhere "
            "(stateLocation). Use a new checkpointLocation, or restore the state"
        )


def refuse_nested_folders(name: str, path: str, folders: dict[str, str]) -> None:
    """Refuses folders inside each other: readers of one would find files of the other."""
    result = _place(path)
    for option, folder in folders.items():
        place = _place(folder)
        if result == place or result in place.parents or place in result.parents:
            raise SkewlessError(
                f"{name}: {path} and {option} {folder} lie inside each other; choose two folders "
                "of which neither holds the other"
            )


def _place(location: str) -> PurePosixPath:
    """The same for the same folder, however it is written; elsewhere than here, as it is."""
    try:
        storage = Storage(location)
        if storage.is_local:
            return PurePosixPath(os.path.realpath(storage.path("")))
    except StateError:
        pass
    return PurePosixPath(location)


def refuse_sparks_own(path: str) -> None:
    """Readers of a path that Spark's file sink has written look at its log and nothing else."""
    try:
        has_log = Storage(path).exists("_spark_metadata")
    except StateError:  # a filesystem that only Spark knows: nothing can be said of it
        return
    if has_log:
        raise SkewlessError(
            f"path: {path} holds the output of Spark's own file sink (_spark_metadata), which "
            "hides all other files from readers; choose another path"
        )
