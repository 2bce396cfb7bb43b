"""What bench and reproduce both show on a terminal: a bar while they work, and verdicts."""

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

_WORDS = {
    True: ("reached", "green"),
    False: ("not reached", "bold red"),
    None: ("not judged", "yellow"),
}


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


def verdict_line(verdict: dict[str, Any], shown: str) -> Text:
    """A target, the value as it is shown, and whether the target is reached.

    >>> str(verdict_line({"target": "≥ 2", "reached": None}, "1.50"))
    '≥ 2: 1.50, not judged'
    """
    word, style = _WORDS[verdict["reached"]]
    return Text(f"{verdict['target']}: {shown}, {word}", style=style)
