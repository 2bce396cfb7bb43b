"""The only package that imports pyspark: sessions, dispatch, steps, sinks and queries."""
