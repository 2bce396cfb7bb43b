"""What all reproductions do with their results: a bar while they run, figures, a record."""

import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Results = TypeVar("Results")


def progress_bar(console: Console) -> Progress:
    """A progress bar that is gone when all is done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def drawn(
    draw: Callable[[Results, Path], Sequence[Path]], results: Results, out: Path, console: Console
) -> list[str]:
    """The figures of the results, each of them named, where they can be drawn."""
    figures = list(draw(results, out)) if find_spec("matplotlib") is not None else []
    if not figures:
        console.print("No figures without matplotlib; it comes with skewless\\[plots].")
    for figure in figures:
        console.print(f"figure: {figure}", soft_wrap=True)
    return [str(figure) for figure in figures]


def recorded(record: dict[str, Any], json_path: Path | None) -> dict[str, Any]:
    """The record, written down where a path was given."""
    if json_path is not None:
        json_path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return record
