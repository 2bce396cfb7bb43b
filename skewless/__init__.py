"""Skewless: PySpark streaming that keeps its speed when the data is skewed."""

import importlib
from typing import TYPE_CHECKING, Any

from skewless.errors import SkewlessError

if TYPE_CHECKING:
    from skewless.operators.join.call import join
    from skewless.planning.auto import Auto
    from skewless.planning.contrand import ContRand
    from skewless.planning.fastjoin import FastJoin
    from skewless.planning.hash import Hash
    from skewless.planning.joinmatrix import JoinMatrix
    from skewless.planning.lsstream import LsStream
    from skewless.runtime.session import session

__version__ = "0.1.0"
__all__ = [
    "Auto",
    "ContRand",
    "FastJoin",
    "Hash",
    "JoinMatrix",
    "LsStream",
    "SkewlessError",
    "join",
    "session",
]

# Loaded on first use: `skewless doctor` must come up on a machine where Spark cannot.
_HOMES = {
    "Auto": "skewless.planning.auto",
    "ContRand": "skewless.planning.contrand",
    "FastJoin": "skewless.planning.fastjoin",
    "Hash": "skewless.planning.hash",
    "JoinMatrix": "skewless.planning.joinmatrix",
    "LsStream": "skewless.planning.lsstream",
    "join": "skewless.operators.join.call",
    "session": "skewless.runtime.session",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'skewless' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
