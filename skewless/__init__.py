"""Skewless: PySpark streaming that keeps its speed when the data is skewed."""

import importlib
from typing import TYPE_CHECKING, Any

from skewless.errors import SkewlessError

if TYPE_CHECKING:
    from skewless.operators.join.call import join
    from skewless.planning.auto import Auto
    from skewless.planning.hash import Hash
    from skewless.runtime.session import session

__version__ = "0.1.0"
__all__ = ["Auto", "Hash", "SkewlessError", "join", "session"]

# Loaded on first use: `skewless doctor` must come up on a machine where Spark cannot.
_HOMES = {
    "Auto": "skewless.planning.auto",
    "Hash": "skewless.planning.hash",
    "join": "skewless.operators.join.call",
    "session": "skewless.runtime.session",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'skewless' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
