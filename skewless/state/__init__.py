"""Durable state: immutable segments, commits, compaction, expiry, recovery."""
