"""Turns records of progress into what people read."""
