"""From commit to commit, whatever the operator: no Spark, no policy by name."""
