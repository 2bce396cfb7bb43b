"""Spark's analysed plan of a DataFrame as text, which is all that Spark Connect shows of it."""

import re

from pyspark.sql import DataFrame

_QUERY = "EXPLAIN EXTENDED SELECT * FROM {frame}"
_PLAN = re.compile(r"== Analyzed Logical Plan ==\n(.*?)\n== Optimized", re.DOTALL)


def analysed(frame: DataFrame) -> list[str]:
    """The lines of the plan; none where Spark does not show it. No job runs."""
    try:
        (row,) = frame.sparkSession.sql(_QUERY, frame=frame).collect()
    except Exception:  # a plan that cannot be shown is no reason to refuse anything
        return []
    plan = _PLAN.search(str(row[0]))
    return [] if plan is None else plan[1].splitlines()
