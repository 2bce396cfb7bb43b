"""Generators of skewed streams for benchmarks, the demo and tests; pure numpy and Arrow."""

from skewless.lab.workloads.city import City, Step
from skewless.lab.workloads.streams import batches, write_batches
from skewless.lab.workloads.zipf import Zipf

__all__ = ["City", "Step", "Zipf", "batches", "write_batches"]
