"""Tells a person which rows of a batch were dropped, and why."""

from collections.abc import Sequence
from typing import Any

_KINDS = (("late", "late"), ("badRows", "bad"))


def dropped_rows(operators: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many rows the operators of some records of progress have dropped, by kind."""
    return {
        word: sum(_total(operator.get(name, 0)) for operator in operators) for name, word in _KINDS
    }


def dropped_line(record: dict[str, Any]) -> str | None:
    """One line on the rows that a batch has dropped; None where it has dropped none."""
    told = [
        f"{operator['name']} dropped {counts}"
        for operator in record["operators"]
        if (counts := _counts(dropped_rows([operator])))
    ]
    if not told:
        return None
    samples = [sample for operator in record["operators"] for sample in operator["dropped"]]
    shown = f"; for example {_sample(samples[0])}" if samples else ""
    return f"batch {record['batchId']}: {', '.join(told)}{shown}"


def explain_dropped(records: Sequence[dict[str, Any]]) -> list[str]:
    """What some batches have dropped, as lines of text; none where they have dropped nothing."""
    operators = [operator for record in records for operator in record["operators"]]
    counts = _counts(dropped_rows(operators))
    if not counts:
        return []
    samples = [sample for operator in operators for sample in operator["dropped"]][-5:]
    return [f"Dropped in these batches: {counts}", *(f"  {_sample(sample)}" for sample in samples)]


def _sample(sample: dict[str, Any]) -> str:
    return f"{sample['input']} row {sample['row']} ({sample['reason']})"


def _counts(counts: dict[str, int]) -> str:
    told = [
        f"{count:,} {word} row{'' if count == 1 else 's'}"
        for word, count in counts.items()
        if count
    ]
    return " and ".join(told)


def _total(count: Any) -> int:
    """A count, or one per side."""
    return sum(count.values()) if isinstance(count, dict) else int(count)
