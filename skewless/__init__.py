"""Skewless: PySpark streaming that keeps its speed when the data is skewed."""

import importlib
from typing import TYPE_CHECKING, Any

from skewless.errors import LateRowsWarning, PerBatchWarning, SkewlessError, StateGrowsWarning

if TYPE_CHECKING:
    from skewless.operators.join.asof import AsOf
    from skewless.operators.join.call import join
    from skewless.operators.join.match import InnerProduct, Overlap
    from skewless.operators.join.near import Near, Nearest
    from skewless.operators.keyed.call import keyed
    from skewless.operators.keyed.process import Agg, Count, SelfJoin
    from skewless.operators.keyed.windows import SessionWindow
    from skewless.operators.map.call import map
    from skewless.operators.subscribe.call import subscribe
    from skewless.planning.auto import Auto
    from skewless.planning.contrand import ContRand
    from skewless.planning.fastjoin import FastJoin
    from skewless.planning.hash import Hash
    from skewless.planning.joinmatrix import JoinMatrix
    from skewless.planning.leastwork import LeastWork
    from skewless.planning.lsstream import LsStream
    from skewless.planning.minmig import MinMig
    from skewless.planning.mintable import MinTable
    from skewless.planning.mixed import Mixed
    from skewless.planning.pkg import PKG
    from skewless.planning.policy import Policy
    from skewless.planning.posg import Posg
    from skewless.planning.readj import Readj
    from skewless.planning.replicated import Replicated
    from skewless.planning.roundrobin import RoundRobin
    from skewless.planning.staticgrid import StaticGrid
    from skewless.planning.swarm import Swarm
    from skewless.runtime.query import Query
    from skewless.runtime.session import session
    from skewless.runtime.stream import Stream
    from skewless.shedding.policy import RandomDrop, Shed

__version__ = "0.1.0"
__all__ = [
    "PKG",
    "Agg",
    "AsOf",
    "Auto",
    "ContRand",
    "Count",
    "FastJoin",
    "Hash",
    "InnerProduct",
    "JoinMatrix",
    "LateRowsWarning",
    "LeastWork",
    "LsStream",
    "MinMig",
    "MinTable",
    "Mixed",
    "Near",
    "Nearest",
    "Overlap",
    "PerBatchWarning",
    "Policy",
    "Posg",
    "Query",
    "RandomDrop",
    "Readj",
    "Replicated",
    "RoundRobin",
    "SelfJoin",
    "SessionWindow",
    "Shed",
    "SkewlessError",
    "StateGrowsWarning",
    "StaticGrid",
    "Stream",
    "Swarm",
    "join",
    "keyed",
    "map",
    "session",
    "subscribe",
]

# Loaded on first use: `skewless doctor` must come up on a machine where Spark cannot.
_HOMES = {
    "Agg": "skewless.operators.keyed.process",
    "AsOf": "skewless.operators.join.asof",
    "Auto": "skewless.planning.auto",
    "ContRand": "skewless.planning.contrand",
    "Count": "skewless.operators.keyed.process",
    "FastJoin": "skewless.planning.fastjoin",
    "Hash": "skewless.planning.hash",
    "InnerProduct": "skewless.operators.join.match",
    "JoinMatrix": "skewless.planning.joinmatrix",
    "LeastWork": "skewless.planning.leastwork",
    "LsStream": "skewless.planning.lsstream",
    "MinMig": "skewless.planning.minmig",
    "MinTable": "skewless.planning.mintable",
    "Mixed": "skewless.planning.mixed",
    "Near": "skewless.operators.join.near",
    "Nearest": "skewless.operators.join.near",
    "Overlap": "skewless.operators.join.match",
    "PKG": "skewless.planning.pkg",
    "Policy": "skewless.planning.policy",
    "Posg": "skewless.planning.posg",
    "Query": "skewless.runtime.query",
    "RandomDrop": "skewless.shedding.policy",
    "Readj": "skewless.planning.readj",
    "Replicated": "skewless.planning.replicated",
    "RoundRobin": "skewless.planning.roundrobin",
    "SelfJoin": "skewless.operators.keyed.process",
    "SessionWindow": "skewless.operators.keyed.windows",
    "Shed": "skewless.shedding.policy",
    "StaticGrid": "skewless.planning.staticgrid",
    "Stream": "skewless.runtime.stream",
    "Swarm": "skewless.planning.swarm",
    "join": "skewless.operators.join.call",
    "keyed": "skewless.operators.keyed.call",
    "map": "skewless.operators.map.call",
    "session": "skewless.runtime.session",
    "subscribe": "skewless.operators.subscribe.call",
}


# Type checkers know the names above: of a function like this they would take any name for granted.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'skewless' has no attribute {name!r}")
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
