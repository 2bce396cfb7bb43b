"""A simulated cluster that drives the same planners as Spark does; pure numpy and numba."""

from skewless.simulate.bottleneck import Bottleneck, find_bottleneck
from skewless.simulate.cluster import Cluster, Course
from skewless.simulate.costs import Costs
from skewless.simulate.run import Look, Run
from skewless.simulate.simulation import simulate
from skewless.simulate.streams import Streams

__all__ = [
    "Bottleneck",
    "Cluster",
    "Costs",
    "Course",
    "Look",
    "Run",
    "Streams",
    "find_bottleneck",
    "simulate",
]
