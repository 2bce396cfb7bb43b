"""The demo's live terminal view, and the plain lines that stand in for it without a terminal."""

import numpy as np
import numpy.typing as npt
from rich.color import Color
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table
from rich.text import Text

from skewless.demo.track import Batch, Track

SPARKS = "▁▂▃▄▅▆▇█"
BAR_WIDTH = 28
FIGURES_WIDTH = 60
# Dark blue over magenta to yellow, in the manner of matplotlib's "inferno".
RAMP = np.array([(10, 8, 30), (75, 12, 107), (165, 44, 96), (237, 105, 37), (252, 255, 164)])


def clock(hour: float) -> str:
    """An hour of the day as a clock shows it."""
    minutes = int(hour * 60 + 1e-6)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def sparkline(values: list[float], width: int = 40) -> str:
    """The last `width` values as a row of blocks, scaled from zero to their maximum."""
    shown = values[-width:]
    top = max(shown, default=0.0)
    if top <= 0:
        return SPARKS[0] * len(shown)
    return "".join(SPARKS[round(value / top * (len(SPARKS) - 1))] for value in shown)


def bar(share: float, width: int = BAR_WIDTH) -> Text:
    """A share of 1 as a bar."""
    full = round(min(max(share, 0.0), 1.0) * width)
    return Text("█" * full, style="cyan") + Text("░" * (width - full), style="grey37")


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


def panel(
    track: Track,
    *,
    hour: float,
    elapsed_s: float,
    waiting: int,
    heat: npt.NDArray[np.float64],
    width: int = 120,
) -> RenderableType:
    """The whole view for a terminal of `width`; `waiting` rows are written and not yet joined."""
    title = f"[bold]Skewless[/] · ride hailing · city time {clock(hour)} · {elapsed_s:.0f} s"
    if not track.batches:
        return Panel("The first micro-batch is on its way ...", title=title, border_style="cyan")
    last = track.batches[-1]
    figures = Table.grid(padding=(0, 2))
    figures.add_column(style="grey62")
    figures.add_column(justify="right", style="bold", min_width=11)
    figures.add_column(style="green")
    taken = [float(batch.rows) for batch in track.batches]
    found = [float(batch.matches) for batch in track.batches]
    figures.add_row("rows/s", f"{track.rate('rows'):,.0f}", sparkline(taken, 24))
    figures.add_row("matches/s", f"{track.rate('matches'):,.0f}", sparkline(found, 24))
    figures.add_row("matches so far", f"{track.matches:,}", "")
    figures.add_row("batch time", f"{last.duration_s * 1000:,.0f} ms", f"batch {last.number}")
    figures.add_row("state", f"{last.state_rows:,}", f"rows, {last.state_bytes / 1e6:.1f} MB")
    figures.add_row("waiting", f"{waiting:,}", "rows")
    figures.add_row("imbalance", f"{last.imbalance:.2f}", "busiest instance / mean")
    load = Table.grid(padding=(0, 1))
    for instance, (share, cpu_ms) in enumerate(zip(track.load_shares(), last.cpu_ms, strict=True)):
        load.add_row(f"instance {instance}", bar(share), f"{share:4.0%}", f"{cpu_ms:,.0f} ms CPU")
    columns = Table.grid(padding=(0, 3))
    columns.add_column(width=FIGURES_WIDTH)
    cells: list[RenderableType] = [Group(figures, "", load)]
    # Rather no map than numbers broken over lines.
    if width >= FIGURES_WIDTH + heat.shape[1] + 7:
        columns.add_column(width=heat.shape[1])
        cells.append(heat_map(heat))
    columns.add_row(*cells)
    return Panel(columns, title=title, border_style="cyan", expand=False)


def line(batch: Batch, track: Track, *, hour: float) -> str:
    """One micro-batch as a line of text."""
    load = " ".join(f"{share:.0%}" for share in track.load_shares())
    return (
        f"{clock(hour)}  batch {batch.number:3d}  {batch.duration_s * 1000:6,.0f} ms"
        f"  {track.rate('rows'):9,.0f} rows/s  {track.rate('matches'):9,.0f} matches/s"
        f"  load {load}  imbalance {batch.imbalance:.2f}  state {batch.state_rows:,} rows"
    )
