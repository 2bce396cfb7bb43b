"""What a benchmark ran on: cores, memory, versions."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("skewless", "pyspark", "pyarrow", "numpy", "numba", "pandas")
# The in-memory state store lives on Java's heap: more than the default of 1 GiB, for all alike.
DRIVER_MEMORY, SMALL_DRIVER_MEMORY = "4g", "1g"
LARGE_MACHINE_BYTES = 10 * 2**30


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def driver_memory() -> str:
    """The heap that every engine gets, as Spark writes it."""
    large = psutil.virtual_memory().total >= LARGE_MACHINE_BYTES
    return DRIVER_MEMORY if large else SMALL_DRIVER_MEMORY


def busy_share() -> float:
    """How much of all cores is in use right now, while the benchmark itself does nothing."""
    return float(psutil.cpu_percent(interval=1.0)) / 100


def versions(*more: str) -> dict[str, str]:
    """The versions of Python and of the packages that matter, and of `more` packages."""
    found = {"python": platform.python_version()}
    return found | {name: importlib.metadata.version(name) for name in (*PACKAGES, *more)}


def machine() -> dict[str, Any]:
    return {
        "cores": cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.platform(),
        "processor": _processor(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
