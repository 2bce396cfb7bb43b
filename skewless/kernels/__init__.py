"""Inner loops on numpy and Arrow; nothing here knows Spark, files or policies."""
