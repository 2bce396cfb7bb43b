"""What `explainBalance` prints: the operators of a chain can be told apart."""

from typing import Any

from skewless.observe.balance import explain_balance


def operator(name: str | None, reason: str) -> dict[str, Any]:
    told = {
        "operator": "join",
        "instances": 2,
        "imbalance": 1.5,
        "load": {"cpuMs": [3.0, 1.0], "rows": [30, 10], "matches": [5, 6]},
        "balance": {"policy": "Auto", "reason": reason},
    }
    return told if name is None else {"name": name, **told}


def records(*operators: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"batchId": batch, "operators": list(operators)} for batch in (6, 7)]


def test_operators_of_a_chain_are_numbered_and_named() -> None:
    chain = records(operator("join on cell", "is even"), operator("join on driver", "waits"))
    lines = explain_balance(chain).splitlines()
    assert lines[0].startswith("1. join on cell on 2 instances, policy Auto: imbalance 1.50")
    assert lines[3].startswith("2. join on driver on 2 instances")
    assert lines[-4:] == [
        "  batch 6, 1. join on cell: imbalance 1.50; is even",
        "  batch 6, 2. join on driver: imbalance 1.50; waits",
        "  batch 7, 1. join on cell: imbalance 1.50; is even",
        "  batch 7, 2. join on driver: imbalance 1.50; waits",
    ]


def test_a_single_operator_has_no_number() -> None:
    lines = explain_balance(records(operator("join on cell", "is even"))).splitlines()
    assert lines[0].startswith("join on cell on 2 instances")
    assert lines[-1] == "  batch 7: imbalance 1.50; is even"


def test_records_without_names_show_the_kind() -> None:
    assert explain_balance(records(operator(None, "is even"))).startswith("join on 2 instances")


def test_rectangles_of_a_map_are_told_by_their_cells() -> None:
    """A cell that is shared from now on keeps its owner: `195: 0→0` would say nothing."""
    told = operator("subscribe to rectangles", "hot cells shared: 1")
    told["balance"] |= {"moves": [[195, 0, 0]], "movedCells": 1}
    last = explain_balance(records(told)).splitlines()[-1]
    assert last.endswith("hot cells shared: 1; 1 cell on other instances")
