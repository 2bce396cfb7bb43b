"""`sk.join`: two streams joined by equal keys and bounded event time."""

from skewless.operators.join.call import join

__all__ = ["join"]
