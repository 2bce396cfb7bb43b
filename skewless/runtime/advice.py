"""What to use instead of the members of a DataFrame that a stream of Skewless does not have."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

_MEMORY = (
    'write it with .writeStream.format("memory").queryName("seen").start() and read '
    'spark.table("seen")'
)
_PER_BATCH = ".transform(lambda df: df.{name}(...)) does it within each batch only"
_ADVICE = {
    ("collect", "toPandas", "toArrow", "take", "head", "first", "tail", "isEmpty"): _MEMORY,
    ("toLocalIterator", "toJSON", "describe", "summary", "stat", "approxQuantile"): _MEMORY,
    ("show",): (
        'a stream has no rows before it is started: .writeStream.format("console").start() shows '
        "every batch"
    ),
    ("explain",): (
        "start it and call query.explain() for Spark's plan, query.explainBalance() for the load"
    ),
    ("count",): (
        "a stream has no end: sk.keyed(stream, ..., process=sk.Count()) counts by key, and "
        'query.lastProgress["skewless"] tells the rows of a batch'
    ),
    ("union", "unionAll", "unionByName"): (
        "union the inputs before the operator, or let two queries write to two places"
    ),
    ("groupBy", "groupby", "agg", "rollup", "cube", "groupingSets"): (
        f"sk.keyed(stream, by=..., time=..., process=sk.Agg({{...}})) aggregates it; {_PER_BATCH}"
    ),
    ("join", "crossJoin", "lateralJoin"): (
        "sk.join joins it with another stream; a table that does not stream is joined to every "
        "batch by .transform(lambda df: df.join(table, ...))"
    ),
    ("withWatermark",): (
        "the watermark of its operator holds; the next operator takes its own as watermark=..."
    ),
    ("distinct", "dropDuplicates", "drop_duplicates", "dropDuplicatesWithinWatermark"): (
        "sk.keyed with a function that keeps the keys it has seen leaves out what is repeated in "
        f"later batches; {_PER_BATCH}"
    ),
    ("orderBy", "sort", "limit", "offset"): f"a stream has no first and no last row; {_PER_BATCH}",
    ("cache", "persist", "unpersist", "checkpoint", "localCheckpoint"): (
        "its batches are computed once; a function of .foreachBatch that uses its DataFrame more "
        "than once calls df.persist() there"
    ),
    ("write", "writeTo"): "use .writeStream",
    # What Spark asks of the other one in df.union(stream) or df.join(stream).
    ("_jdf", "_plan"): (
        "a DataFrame cannot be combined with it: union the inputs before the operator, join it "
        "with sk.join, or combine every batch by .transform(lambda batch: ...)"
    ),
    ("foreach", "foreachPartition"): "use .writeStream.foreachBatch(function)",
    (
        "createTempView",
        "createOrReplaceTempView",
        "createGlobalTempView",
        "createOrReplaceGlobalTempView",
        "registerTempTable",
    ): _MEMORY,
    ("mapInPandas", "mapInArrow", "rdd"): (
        "sk.map(stream, fn, schema, cost_key=...) applies a function to its rows; so does "
        ".transform(lambda df: df.mapInArrow(...)), without balancing"
    ),
}
_BY_NAME = {name: advice for names, advice in _ADVICE.items() for name in names}


def no_such_member(name: str, columns: Sequence[str]) -> AttributeError:
    """The error for a name that a stream does not have."""
    hint = ""
    if name in columns:
        hint = f"; use F.col({name!r}) for the column"
    elif name in _BY_NAME:
        hint = "; " + _BY_NAME[name].replace("{name}", name)
    elif not name.startswith("_") and hasattr(DataFrame, name):
        hint = f"; use .transform(lambda df: df.{name}(...)), which is applied to every batch"
    return AttributeError(f"a stream of Skewless has no {name!r}{hint}")
