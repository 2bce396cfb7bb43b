"""Notices code on a stream's result that sees one batch where all of them may be meant."""

import re
import uuid
from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from skewless.runtime.plans import analysed

# The nodes of Spark's analysed plan whose result depends on which rows are in a batch together.
_WHAT = (
    (re.compile(r"Aggregate\b"), "aggregates"),
    (re.compile(r"(Deduplicate|Distinct|Except|Intersect)\b"), "removes duplicates"),
    (re.compile(r"(GlobalLimit|Offset|Tail)\b"), "limits rows"),
    (re.compile(r"Sort\b.*, true\b"), "sorts"),
    (re.compile(r"(Window|WindowInPandas|WindowGroupLimit)\b"), "uses window functions"),
    (re.compile(r"(FlatMap(Co)?Groups|TransformWithState)\w*"), "groups"),
)
_BRANCHES = re.compile(r"[ :+-]*")


def sample(session: SparkSession, schema: T.StructType) -> tuple[DataFrame, str]:
    """An empty batch, and the name by which a plan shows where it is."""
    name = f"batch_{uuid.uuid4().hex}"
    return session.createDataFrame([], schema).alias(name), name


def across_rows(result: DataFrame, name: str) -> str | None:
    """What is done to the rows of a batch together ("aggregates"); None: nothing that is known."""
    plan = analysed(result)
    for number, line in enumerate(plan):
        if name in line and "SubqueryAlias" in line:
            for node in _above(plan, number):
                for pattern, what in _WHAT:
                    if pattern.match(node):
                        return what
    return None


def _above(plan: list[str], number: int) -> Iterator[str]:
    """The nodes over a line of a plan, from it to the root: those that are less far in."""
    depth = _depth(plan[number])
    for line in reversed(plan[:number]):
        if _depth(line) < depth:
            depth = _depth(line)
            yield line[depth:]


def _depth(line: str) -> int:
    branches = _BRANCHES.match(line)
    return branches.end() if branches else 0
