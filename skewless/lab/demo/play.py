"""Plays a city into its files for queries that run, and shows what they tell meanwhile."""

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from rich.console import Console
from rich.live import Live

from skewless.lab.demo import view
from skewless.lab.demo.contest import Contender
from skewless.lab.demo.feed import Feed

FILE_PERIOD_S = 2.0
POLL_S = 0.2
START_UP_S = 25.0  # a start of Spark that takes longer shortens the run, so that it ends in time
PATIENCE_S = 60.0  # the longest that a micro-batch may take, Spark's start-up in the first included

Show = Callable[[list[Contender], Feed, float], None]


def screen(console: Console, live: bool) -> AbstractContextManager[Show]:
    """What to do at each look at the queries: refresh the view, or print the new batches."""
    if live:
        return _LiveScreen(console)
    shown: dict[str, int] = {}

    def print_new(contenders: list[Contender], feed: Feed, elapsed_s: float) -> None:
        for contender in contenders:
            track = contender.track
            for batch in track.batches[shown.get(contender.name, 0) :]:
                line = view.line(contender.name, batch, track, hour=feed.city.hour)
                console.print(line, soft_wrap=True)
            shown[contender.name] = len(track.batches)

    return nullcontext(print_new)


class _LiveScreen(AbstractContextManager[Show]):
    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Show:
        self._live.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _show(self, contenders: list[Contender], feed: Feed, elapsed_s: float) -> None:
        picture = view.screen(
            {contender.name: contender.track for contender in contenders},
            hour=feed.city.hour,
            elapsed_s=elapsed_s,
            heat=feed.recent_heat,
            width=self._live.console.width,
            height=self._live.console.height,
        )
        self._live.update(picture, refresh=True)


def watch(
    contenders: list[Contender],
    feed: Feed,
    begin_by: float,
    seconds: int,
    show: Show,
    after_file: Callable[[], None] = lambda: None,
) -> None:
    """Play the city for `seconds` after the first batches, or after `begin_by` if that is sooner.

    The next file is written when it is due and both queries are done with the one before: a file is
    a micro-batch of both, neither falls behind, and a slow machine only slows the city down.
    `after_file` is called whenever both are done with one.
    """
    written = time.monotonic()
    begin: float | None = None
    due = end = 0.0
    noted = 0
    while True:
        now = time.monotonic()
        for contender in contenders:
            contender.look()
        if all(contender.is_done_with(feed) for contender in contenders):
            if noted < feed.files:
                noted = feed.files
                after_file()
            if begin is None:
                begin = due = now
                end = min(now, begin_by) + seconds
            if now >= end:
                show(contenders, feed, now - begin)
                return
            if now >= due:
                feed.write_next()
                written = now
                due = max(due + FILE_PERIOD_S, now)
        elif now - written > PATIENCE_S:
            raise TimeoutError(f"a micro-batch was not done in {PATIENCE_S:.0f} s")
        show(contenders, feed, 0.0 if begin is None else now - begin)
        # Waits, and ends the wait early if the query fails.
        contenders[0].query.awaitTermination(POLL_S)


def empty_folder(out: Path | None) -> Path:
    folder = out or Path(tempfile.mkdtemp(prefix="skewless-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ValueError(f"out must be an empty or a new folder, got {folder}, which has files")
    return folder.resolve()
