"""Benchmarks: the same files through Skewless, through Spark's own operators, and the floor."""
