"""Shuffle policies tuple by tuple, as the evaluation of POSG runs them; Spark deals out batches."""
