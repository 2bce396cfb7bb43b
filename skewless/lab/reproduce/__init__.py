"""The papers' experiments, run again on a simulated cluster with our planners."""
