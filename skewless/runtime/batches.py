"""Runs the tasks of an operator on DataFrames that do not stream, as part of an ordinary query."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.engine.columns import INSTANCE, POSTINGS
from skewless.routing.route import Route
from skewless.runtime import routing
from skewless.runtime.dispatch import Task, Worker


def joined_frame(rows: DataFrame, task: Task, route: Route, schema: T.StructType) -> DataFrame:
    """What the tasks give; every row names its instance, so the plan around may be anything."""
    if POSTINGS in rows.columns:
        routed, instance = routing.set_visits(rows, route)
    else:
        routed, instance = routing.visits(rows, route, (), replicates=True)
    if INSTANCE not in routed.columns:
        routed = routed.select("*", F.expr(instance).alias(INSTANCE))
    sent = routed.repartitionById(route.instances, F.col(INSTANCE))
    return sent.mapInArrow(Worker(task, None), schema)
