"""What all reproductions do with their results: tables, figures, a record."""

import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.console import Console, RenderableType

Results = TypeVar("Results")


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


class Result(Protocol):
    """What one run has found."""

    def as_json(self) -> dict[str, Any]: ...


def evaluation(
    paper: str, results: Sequence[Result], targets: list[dict[str, Any]], **settings: Any
) -> dict[str, Any]:
    """The record of a paper's evaluation: its settings, the targets, and every result."""
    found = [result.as_json() for result in results]
    return {"paper": paper, **settings, "targets": targets, "results": found}


def published(
    results: Results,
    table: RenderableType,
    draw: Callable[[Results, Path], Sequence[Path]],
    record: dict[str, Any],
    *,
    out: Path,
    json_path: Path | None,
    console: Console,
) -> dict[str, Any]:
    """Shows the table, draws the figures into `out`, and gives the record with their names.

    The record is written down where a path was given.
    """
    console.print(table)
    record = {**record, "figures": drawn(draw, results, out, console)}
    if json_path is not None:
        json_path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return record


def new_figure() -> tuple[Any, Any]:
    """A figure that needs no screen, and its axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(7, 4))


def save_figure(figure: Any, axes: Any, path: Path, *, beside: float = 1.0) -> Path:
    """Writes a figure of lines, with their legend beside them, never on them.

    `beside` is where the legend begins, in widths of the axes; an axis on the right needs room.
    """
    from matplotlib import pyplot

    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(beside, 0.5))
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
