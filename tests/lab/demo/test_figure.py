"""The figure: a readable PNG of the expected size, whatever the run looked like."""

import struct
from pathlib import Path

import numpy as np
import pytest

from skewless.lab.demo import figure
from skewless.lab.demo.track import Track

from .records import record

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("batches", [1, 2, 40])
def test_the_figure_is_a_png_with_something_on_it(tmp_path: Path, batches: int) -> None:
    still, moving = Track(), Track()
    still.add(record(number, matches=number) for number in range(batches))
    moving.add(
        record(number, cpu_ms=(21.0, 20.0), moves=((3, 0, 1),) * (number % 2), splits=(number,))
        for number in range(batches)
    )
    tracks = {"Hash": still, "Skewless": moving}
    path = tmp_path / "city.png"
    jumps_s = [moving.batches[-1].end_s]
    figure.draw(tracks, np.arange(1024).reshape(32, 32), 16_000.0, path, jumps_s)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (1820, 975)
    assert len(data) > 30_000


def test_a_city_without_orders_still_gives_a_figure(tmp_path: Path) -> None:
    track = Track()
    track.add([record(0, rows=(0, 0), matches=0, cpu_ms=(0.001,))])
    tracks = {"Hash": track, "Skewless": track}
    figure.draw(tracks, np.zeros((32, 32), dtype=np.int64), 16_000.0, tmp_path / "city.png")
    assert (tmp_path / "city.png").stat().st_size > 10_000
