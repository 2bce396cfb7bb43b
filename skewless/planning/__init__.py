"""Policies and planners: pure functions from measured load to a routing table."""
