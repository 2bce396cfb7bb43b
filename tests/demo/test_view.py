"""The terminal view: what it shows, at the width it is given."""

import numpy as np
import pytest
from rich.console import Console

from skewless.demo import view
from skewless.demo.track import Track

from .records import record


def render(track: Track, width: int) -> str:
    console = Console(width=width, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(
            view.panel(
                track,
                hour=8.1,
                elapsed_s=12.3,
                waiting=4_321,
                heat=np.arange(1024.0).reshape(32, 32),
                width=width,
            )
        )
    return capture.get()


def tracked(batches: int) -> Track:
    track = Track()
    track.add(record(number) for number in range(batches))
    return track


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_panel_shows_every_number_unbroken(width: int) -> None:
    text = render(tracked(20), width)
    for shown in ("1,000", "5,000", "100,000", "500 ms", "4,321", "1.50", "75%", "25%", "08:06"):
        assert shown in text
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= width
    assert sum("instance 0" in line or "instance 1" in line for line in lines) == 2
    assert ("▀" * 32 in text) == (width >= 100)


def test_before_the_first_batch_the_panel_says_so() -> None:
    assert "first micro-batch" in render(Track(), 100)


def test_a_line_for_places_without_a_terminal() -> None:
    track = tracked(20)
    text = view.line(track.batches[-1], track, hour=8.1)
    assert text.startswith("08:06  batch  19")
    assert "1,000 rows/s" in text
    assert "load 75% 25%" in text
    assert "imbalance 1.50" in text


@pytest.mark.parametrize(
    ("values", "line"),
    [([], ""), ([0, 0], "▁▁"), ([0, 7], "▁█"), ([7, 3.5, 0], "█▅▁"), ([1] * 50, "█" * 40)],
)
def test_sparkline(values: list[float], line: str) -> None:
    assert view.sparkline(values) == line


@pytest.mark.parametrize(
    ("hour", "shown"), [(0.0, "00:00"), (8.25, "08:15"), (23.999, "23:59"), (7 + 1 / 3, "07:20")]
)
def test_clock(hour: float, shown: str) -> None:
    assert view.clock(hour) == shown
