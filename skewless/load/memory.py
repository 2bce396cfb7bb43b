"""How much memory a task's process has held."""

import resource
import sys


def peak_memory_bytes() -> int:
    """The most that this process has held resident since it started."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
