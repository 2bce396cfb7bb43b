"""Policies, one per file: pure functions from measured load to the route of the next batch."""
