"""The demo's live terminal view, and the plain lines that stand in for it without a terminal."""

import numpy as np
import numpy.typing as npt
from rich.color import Color
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table
from rich.text import Text

from skewless.lab.demo.track import Batch, Change, Floats, Track

SPARKS = "▁▂▃▄▅▆▇█"
PANEL_WIDTH = 40  # at least
PANEL_BORDER = MAP_BORDER = 4
SMOOTHED_BATCHES = 3
LEAST_CHANGES, MOST_CHANGES = 3, 8
MOVES_SHOWN = 4
# Up to which load over the mean an instance is shown in which colour.
LEVELS = ((1.15, "green"), (1.5, "yellow"), (float("inf"), "red"))
# Dark blue over magenta to yellow, in the manner of matplotlib's "inferno".
RAMP = np.array([(10, 8, 30), (75, 12, 107), (165, 44, 96), (237, 105, 37), (252, 255, 164)])


def clock(hour: float) -> str:
    """An hour of the day as a clock shows it."""
    minutes = int(hour * 60 + 1e-6)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def sparkline(values: list[float], width: int = 40, top: float | None = None) -> str:
    """The last `width` values as a row of blocks, scaled from zero to `top` or their maximum."""
    shown = values[-width:]
    if top is None:
        top = max(shown, default=0.0)
    if top <= 0:
        return SPARKS[0] * len(shown)
    return "".join(SPARKS[round(value / top * (len(SPARKS) - 1))] for value in shown)


def bar(ratio: float, top: float, width: int) -> Text:
    """A load over the mean as a bar up to `top`, with a mark where the mean is."""
    full = round(min(max(ratio, 0.0), top) / top * width)
    mean = round(width / top)
    colour = next(colour for limit, colour in LEVELS if ratio <= limit)
    text = Text("█" * full + " " * (width - full), style=colour)
    if full <= mean < width:
        text = text[:mean] + Text("│", style="grey50") + text[mean + 1 :]
    return text


def heat_map(heat: npt.NDArray[np.float64]) -> Segments:
    """A map with north up: each character shows two places, one above the other."""
    # The square root keeps the quieter quarters visible beside the hottest cell.
    level = np.sqrt(heat / max(float(heat.max()), 1e-9))[::-1]
    stops = np.linspace(0.0, 1.0, len(RAMP))
    red, green, blue = (
        np.interp(level, stops, RAMP[:, channel]).astype(int) for channel in range(3)
    )
    segments = []
    for upper in range(0, len(level), 2):
        for x in range(level.shape[1]):
            above, below = (
                Color.from_rgb(red[row, x], green[row, x], blue[row, x])
                for row in (upper, upper + 1)
            )
            segments.append(Segment("▀", Style(color=above, bgcolor=below)))
        segments.append(Segment.line())
    return Segments(segments)


def screen(
    tracks: dict[str, Track],
    *,
    hour: float,
    elapsed_s: float,
    heat: npt.NDArray[np.float64],
    width: int = 120,
    height: int = 24,
) -> RenderableType:
    """The whole view for a terminal of that size: the queries side by side, then what changed."""
    title = f"[bold]A ride-hailing city[/] · city time {clock(hour)} · {elapsed_s:.0f} s"
    if not all(track.batches for track in tracks.values()):
        return Panel("The first micro-batches are on their way ...", title=title)
    # Rather no map than numbers broken over lines.
    map_width = heat.shape[1] + MAP_BORDER
    with_map = width >= len(tracks) * PANEL_WIDTH + map_width
    each = min((width - map_width * with_map) // len(tracks), 2 * PANEL_WIDTH)
    # One scale for all, so that panels can be compared.
    top = max(2.0, *(float(_lately(track).max()) for track in tracks.values()))
    worst = max(batch.imbalance for track in tracks.values() for batch in track.steady)
    columns = Table.grid()
    cells: list[RenderableType] = [
        Panel(
            _query(track, top, worst, each - PANEL_BORDER),
            title=f"[bold]{name}[/]",
            width=each,
            border_style="cyan",
        )
        for name, track in tracks.items()
    ]
    if with_map:
        cells.append(Panel(heat_map(heat), title="orders", width=map_width, border_style="cyan"))
    columns.add_row(*cells)
    total = each * len(tracks) + map_width * with_map
    # Title and borders take five lines, the panels as many as the map.
    count = min(max(height - heat.shape[0] // 2 - 5, LEAST_CHANGES), MOST_CHANGES)
    return Group(Rule(title, style="cyan"), columns, _changes(tracks, count, total))


def _lately(track: Track) -> Floats:
    """The instances' loads over their mean, of the last batches together."""
    return track.loads()[-SMOOTHED_BATCHES:].mean(axis=0)


def _query(track: Track, top: float, worst: float, width: int) -> RenderableType:
    last = track.batches[-1]
    figures = Table.grid(padding=(0, 1))
    figures.add_column(style="grey62", width=10)
    figures.add_column(justify="right", style="bold", width=9)
    figures.add_column(style="green")
    lines = width - 21
    for what in ("rows", "matches"):
        values = [float(getattr(batch, what)) for batch in track.steady]
        figures.add_row(f"{what}/s", f"{track.rate(what):,.0f}", sparkline(values, lines))
    figures.add_row("matches", f"{track.matches:,}", "so far")
    figures.add_row("batch time", f"{last.duration_s * 1000:,.0f} ms", f"batch {last.number}")
    imbalance = [batch.imbalance for batch in track.steady]
    above = sparkline([value - 1 for value in imbalance], lines, worst - 1)
    figures.add_row("straggler", f"{last.straggler_ms:,.0f} ms", "CPU")
    figures.add_row("imbalance", f"{last.imbalance:.2f}", above)
    figures.add_row("on average", f"{np.mean(imbalance):.2f}", "busiest / mean")
    load = Table.grid(padding=(0, 1))
    for instance, ratio in enumerate(_lately(track).tolist()):
        load.add_row(f"{instance:2d}", bar(ratio, top, width - 10), f"{ratio:5.2f}×")
    return Group(figures, "", load)


def _changes(tracks: dict[str, Track], count: int, width: int) -> RenderableType:
    """The last changes, the newest at the bottom, and always as many lines."""
    changes = [change for track in tracks.values() for change in track.changes]
    lines = []
    for change in sorted(changes, key=lambda change: change.batch.end_s)[-count:]:
        line = Text(f"batch {change.batch.number:3d}  ", "bold", overflow="ellipsis", no_wrap=True)
        lines.append(line.append(enacted(change)).append(f"  {why(change.batch)}", "grey62"))
    blank = [Text("")] * (count - len(lines))
    return Panel(Group(*lines, *blank), title="moves and splits", width=width, border_style="cyan")


def enacted(change: Change) -> str:
    """What was done, in few words."""
    parts = []
    if moves := change.batch.moves:
        listed = ", ".join(f"{old}→{new}" for _, old, new in moves[:MOVES_SHOWN])
        more = ", …" if len(moves) > MOVES_SHOWN else ""
        parts.append(
            f"{len(moves)} {change.batch.unit}{'s' * (len(moves) > 1)} moved ({listed}{more})"
        )
    for count, done in ((change.split, "split"), (change.folded, "folded")):
        if count:
            parts.append(f"{count} key{'s' * (count > 1)} {done}")
    return ", ".join(parts)


def why(batch: Batch) -> str:
    """The planner's reason, without what it did, and what it expects."""
    reason = batch.reason.split(";")[0]
    if batch.imbalance_expected is None:
        return reason
    return f"{reason}, {batch.imbalance_expected:.0%} expected"


def line(name: str, batch: Batch, track: Track, *, hour: float) -> str:
    """One micro-batch as a line of text, and a second one if something was changed after it."""
    load = " ".join(f"{ratio:.2f}" for ratio in np.array(batch.cpu_ms) / np.mean(batch.cpu_ms))
    text = (
        f"{clock(hour)}  {name:8}  batch {batch.number:3d}  {batch.duration_s * 1000:6,.0f} ms"
        f"  {track.rate('rows'):9,.0f} rows/s  {track.rate('matches'):9,.0f} matches/s"
        f"  imbalance {batch.imbalance:.2f}  load {load}"
    )
    for change in track.changes:
        if change.batch is batch:
            text += f"\n{'':17}then {enacted(change)}: {why(batch)}"
    return text
