"""Generators of skewed streams for benchmarks, the demo and tests; pure numpy and Arrow."""

from skewless.workloads.city import City, Step
from skewless.workloads.streams import batches, write_batches
from skewless.workloads.zipf import Zipf

__all__ = ["City", "Step", "Zipf", "batches", "write_batches"]
