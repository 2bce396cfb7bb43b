"""How benchmarks write values, targets and remarks."""

import io
from typing import Any

import pytest
from rich.console import Console

from skewless.lab.bench import table


def test_what_was_not_measured_is_a_dash() -> None:
    shown = (table.number, table.duration, table.memory, table.times, table.ratio)
    assert [show(None) for show in shown] == ["–"] * 5
    assert [show(12.0) for show in shown] == ["12", "12.0", "0.00 GiB", "12.0 ×", "12.00"]


@pytest.mark.parametrize(
    ("value", "reached", "shown"),
    [
        (2.0, True, "≥ 1: 200%, reached"),
        (0.5, False, "≥ 1: 50%, not reached"),
        (0.5, None, "≥ 1: 50%, not judged"),
        (None, None, "≥ 1: not measured, not judged"),
    ],
)
def test_targets(value: float | None, reached: bool | None, shown: str) -> None:
    verdict: dict[str, Any] = {"target": "≥ 1", "ratio": "r", "value": value, "reached": reached}
    (line,) = table.verdict_remarks({"targets": [verdict]}, {"r": lambda share: f"{share:.0%}"})
    assert line.plain == shown


def test_only_a_busy_machine_is_remarked_on() -> None:
    assert table.busy_remarks(table.QUIET) == []
    (line,) = table.busy_remarks(0.4)
    assert line.plain.startswith("the machine was up to 40% busy")


def test_a_table_fits_a_narrow_terminal() -> None:
    console = Console(file=io.StringIO(), width=20)
    made = table.narrow("engine", "s")
    made.add_row("skewless", "0.5")
    console.print(made)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().split("\n")[-2] == "skewless  0.5"
