"""The terminal view: what it shows, at the width it is given."""

import numpy as np
import pytest
from rich.console import Console

from skewless.lab.demo import view
from skewless.lab.demo.track import Track

from .records import record


def render(tracks: dict[str, Track], width: int) -> str:
    console = Console(width=width, force_terminal=False, color_system=None)
    heat = np.arange(1024.0).reshape(32, 32)
    with console.capture() as capture:
        console.print(view.screen(tracks, hour=8.1, elapsed_s=12.3, heat=heat, width=width))
    return capture.get()


def tracks(batches: int, instances: int = 8) -> dict[str, Track]:
    still, moving = Track(), Track()
    even, skewed = (10.0,) * instances, (150.0,) + (10.0,) * (instances - 1)
    still.add(record(number, cpu_ms=skewed) for number in range(batches))
    moving.add(
        record(
            number,
            cpu_ms=even,
            reason="the straggler is 50% above the mean; partitions moved: 1",
            moves=((7, 2, 5),) * (number > 3),
            splits=(number,),
            expected=0.04,
        )
        for number in range(batches)
    )
    return {"Hash": still, "Skewless": moving}


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_the_screen_shows_every_number_unbroken(width: int) -> None:
    text = render(tracks(20), width)
    for shown in ("Hash", "Skewless", "08:06", "12 s", "500 ms", "5.45", "1.00"):
        assert shown in text
    for twice in ("1,000", "5,000", "100,000"):
        assert text.count(twice) >= 2
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= width
    assert len(lines) <= 24  # the smallest usual terminal
    assert ("▀" * 32 in text) == (width >= 120)


def test_the_last_changes_are_listed_with_their_reason() -> None:
    text = render(tracks(20), 120)
    assert [f"batch  {number}" in text for number in (16, 17, 19)] == [False, True, True]
    assert "1 partition moved (2→5), 1 key split, 1 key folded" in text
    assert "the straggler is 50% above the mean, 4% expected" in text


def test_before_the_first_batches_the_screen_says_so() -> None:
    assert "first micro-batches" in render(tracks(3) | {"Skewless": Track()}, 100)


def test_a_line_for_places_without_a_terminal() -> None:
    both = tracks(20, instances=2)
    text = view.line("Hash", both["Hash"].batches[-1], both["Hash"], hour=8.1)
    assert text.startswith("08:06  Hash      batch  19")
    for shown in ("1,000 rows/s", "5,000 matches/s", "imbalance 1.88", "load 1.88 0.12"):
        assert shown in text
    assert "\n" not in text
    moving = both["Skewless"]
    done = view.line("Skewless", moving.batches[-1], moving, hour=8.1).splitlines()[1]
    assert done.strip().startswith("then 1 partition moved (2→5), 1 key split, 1 key folded: the")


def test_a_long_list_of_moves_is_cut_short() -> None:
    track = Track()
    track.add([record(0, moves=tuple((p, p % 2, 1 - p % 2) for p in range(9)))])
    assert view.enacted(track.changes[0]) == "9 partitions moved (0→1, 1→0, 0→1, 1→0, …)"


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        (0.0, "     │    "),
        (0.5, "██   │    "),
        (1.0, "█████│    "),
        (1.6, "████████  "),
        (9, "█" * 10),
    ],
)
def test_bar(ratio: float, shown: str) -> None:
    assert view.bar(ratio, 2.0, 10).plain == shown


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
