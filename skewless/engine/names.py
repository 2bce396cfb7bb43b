"""What an operator is called where several are told apart."""

from collections.abc import Mapping
from typing import Any

_PROCESSES = {"selfJoin": "self-join"}
_CONDITIONS = {"innerProduct": "inner product"}


def operator_name(fingerprint: Mapping[str, Any]) -> str:
    """What an operator does, in a few words that tell it from others of its query.

    >>> operator_name({"operator": "join", "on": [["cell", "cell"], ["day", "date"]]})
    'join on cell, day = date'
    >>> operator_name({"operator": "join", "on": [], "match": {"kind": "overlap", "columns": "ab"}})
    'join by overlap of a and b'
    >>> operator_name({"operator": "keyed", "process": "count", "by": ["word"]})
    'keyed count by word'
    >>> operator_name({"operator": "subscribe", "shape": "circle"})
    'subscribe to circles'
    """
    name = str(fingerprint.get("operator", "operator"))
    if "process" in fingerprint:
        name += f" {_PROCESSES.get(fingerprint['process'], fingerprint['process'])}"
    if "on" in fingerprint:
        pairs = [[on, on] if isinstance(on, str) else on for on in fingerprint["on"]]
        if pairs:
            name += " on " + ", ".join(a if a == b else f"{a} = {b}" for a, b in pairs)
        match = fingerprint.get("match")
        return name if match is None else f"{name} by {_set_condition(match)}"
    if "shape" in fingerprint:
        return f"{name} to {fingerprint['shape']}s"
    keys = fingerprint.get("by", fingerprint.get("costKey", ()))
    return f"{name} by {', '.join(keys)}" if keys else name


def _set_condition(match: Mapping[str, Any]) -> str:
    left, right = match["columns"]
    columns = left if left == right else f"{left} and {right}"
    return f"{_CONDITIONS.get(match['kind'], match['kind'])} of {columns}"
