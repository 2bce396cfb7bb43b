"""What people are told of the rows that a batch has dropped."""

from typing import Any

from skewless.observe.dropped import dropped_line, dropped_rows, explain_dropped

SAMPLE = {"input": "left", "row": {"k": 1}, "reason": "late"}


def record(batch: int, **operator: Any) -> dict[str, Any]:
    told = {"operator": "join", "name": "join", "dropped": [], **operator}
    return {"batchId": batch, "operators": [told]}


def test_counts_are_of_all_sides_and_operators() -> None:
    operators = [{"late": {"left": 1, "right": 2}, "badRows": 4}, {"badRows": {"input": 1}}, {}]
    assert dropped_rows(operators) == {"late": 3, "bad": 5}


def test_one_line_says_how_many_and_shows_one() -> None:
    assert dropped_line(record(7, late={"left": 0}, badRows=0)) is None
    told = dropped_line(record(7, late={"left": 1_000}, badRows=1, dropped=[SAMPLE]))
    assert told == (
        "batch 7: join dropped 1,000 late rows and 1 bad row; for example left row {'k': 1} (late)"
    )
    assert dropped_line(record(7, late=2)) == "batch 7: join dropped 2 late rows"


def test_the_last_few_rows_of_some_batches_are_explained() -> None:
    assert explain_dropped([record(1), record(2)]) == []
    rows = [{**SAMPLE, "row": {"k": number}} for number in range(8)]
    lines = explain_dropped(
        [record(1, late=4, dropped=rows[:4]), record(2, late=4, dropped=rows[4:])]
    )
    assert lines[0] == "Dropped in these batches: 8 late rows"
    assert lines[1:] == [f"  left row {{'k': {number}}} (late)" for number in range(3, 8)]
