"""Reports in, decision out: the loop that Spark, the local runner and the simulation share."""
