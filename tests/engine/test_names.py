"""Names by which people tell the operators of a query apart."""

from typing import Any

import pytest

from skewless.engine.names import operator_name


@pytest.mark.parametrize(
    ("fingerprint", "name"),
    [
        ({"operator": "join", "on": ["k"]}, "join on k"),
        ({"operator": "join", "on": [["cell", "place"]]}, "join on cell = place"),
        ({"operator": "keyed", "process": "selfJoin", "by": ["a", "b"]}, "keyed self-join by a, b"),
        ({"operator": "map", "costKey": ["place"]}, "map by place"),
        ({"operator": "map", "costKey": []}, "map"),
        ({}, "operator"),
    ],
)
def test_names(fingerprint: dict[str, Any], name: str) -> None:
    assert operator_name(fingerprint) == name
