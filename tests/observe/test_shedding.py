"""What a person is told of a join that sheds."""

from typing import Any

from skewless.observe.balance import explain_balance
from skewless.observe.shedding import explain_shedding


def shed(**changed: Any) -> dict[str, Any]:
    record = {
        "maxLatencyMs": 1500.0,
        "fraction": 1.0,
        "leftWindow": 1.0,
        "rightWindow": 1.0,
        "results": 12_345,
        "missed": 0.0,
        "missedError": 0.0,
        "droppedRows": {"left": 0, "right": 0},
    }
    return {**record, **changed}


def test_nothing_given_up_is_said() -> None:
    assert explain_shedding(shed()) == "shedding: nothing was given up to stay below 1.5 s"


def test_what_was_given_up_is_a_sentence() -> None:
    told = explain_shedding(
        shed(
            fraction=0.123,
            leftWindow=0.2,
            rightWindow=0.05,
            missed=50_000.4,
            missedError=1_200.6,
            droppedRows={"left": 3, "right": 4},
        )
    )
    assert told == (
        "shedding: to stay below 1.5 s it did 12.3% of the work of a full join (20.0% of the left "
        "window, 5.0% of the right), gave 12,345 results and missed about 50,000 ± 1,201; "
        "7 rows were dropped and not stored to stay below 1.5 s"
    )


def test_explain_balance_has_it() -> None:
    join = {
        "operator": "join",
        "name": "join on k",
        "instances": 1,
        "imbalance": 1.0,
        "balance": {"policy": "Hash"},
        "load": {"cpuMs": [1.0], "rows": [1], "matches": [1]},
        "shed": shed(),
    }
    assert "nothing was given up" in explain_balance([{"batchId": 0, "operators": [join]}])
