"""Points and subscriptions to draw, a policy that changes all tiles, and what must come out."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from skewless.planning.decision import Decision, Memory
from skewless.planning.tiles.policy import TilePolicy
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.tiles import Tile, TileRoute

STAMP = pa.timestamp("us", "UTC")
SECOND = 1_000_000
# On edges of cells, on corners of the map, and anywhere.
PLACES = st.one_of(
    st.sampled_from([0.0, 12.5, 25.0, 50.0, 87.5, 100.0]),
    st.floats(0.0, 100.0, allow_nan=False, width=32),
)
EDGES = st.one_of(PLACES, st.sampled_from([-1e9, -5.0, 105.0, 1e9, float("inf"), float("-inf")]))


@st.composite
def rectangles(draw: st.DrawFn) -> tuple[float, float, float, float]:
    """Any rectangle: points, lines, huge ones, beyond the bounds."""
    xs = sorted((draw(EDGES), draw(EDGES)))
    ys = sorted((draw(EDGES), draw(EDGES)))
    if draw(st.booleans()):
        xs[1], ys[1] = xs[0], ys[0]
    return xs[0], ys[0], xs[1], ys[1]


CIRCLES = st.tuples(PLACES, PLACES, st.one_of(st.just(0.0), st.floats(0.0, 80.0, width=32)))
POINTS = st.lists(st.tuples(PLACES, PLACES), max_size=30)


def points_table(places: list[tuple[float, float]], first: int, times: Any = None) -> pa.Table:
    columns = {
        "pid": pa.array(range(first, first + len(places)), pa.int64()),
        "x": pa.array([x for x, _ in places], pa.float64()),
        "y": pa.array([y for _, y in places], pa.float64()),
    }
    if times is not None:
        columns["at"] = pa.array(times, STAMP)
    return pa.table(columns)


def queries_table(rows: list[dict[str, Any]], names: tuple[str, ...]) -> pa.Table:
    kinds = {"id": pa.int64(), "op": pa.string(), "asked_at": STAMP}
    fields = [(name, kinds.get(name, pa.float64())) for name in names]
    return pa.Table.from_pylist(
        [{name: row.get(name) for name in names} for row in rows], pa.schema(fields)
    )


def is_inside(x: float, y: float, row: dict[str, Any]) -> bool:
    if "radius" in row:
        return (x - row["x"]) ** 2 + (y - row["y"]) ** 2 <= row["radius"] ** 2
    return bool(row["x_min"] <= x <= row["x_max"] and row["y_min"] <= y <= row["y_max"])


def pairs_of(result: pa.Table) -> Counter[tuple[int, int]]:
    return Counter(
        zip(result.column("pid").to_pylist(), result.column("id").to_pylist(), strict=True)
    )


@dataclass
class Model:
    """What subscriptions mean, in the plainest form."""

    holding: dict[int, dict[str, Any]] = field(default_factory=dict)
    past: list[tuple[int, float, float, int]] = field(default_factory=list)
    found: Counter[tuple[int, int]] = field(default_factory=Counter)
    watermark: int | None = None

    def step(
        self,
        points: list[tuple[int, float, float, int]],
        queries: list[dict[str, Any]],
        window_us: int = 0,
        *,
        tumbling: bool = False,
        delay_us: int = 0,
    ) -> None:
        words = sorted(queries, key=lambda row: row.get("asked_at", 0))
        for row in words:
            if row["op"] in ("add", "change"):
                self.holding[row["id"]] = row
            elif row["op"] == "remove":
                self.holding.pop(row["id"], None)
        for pid, x, y, _ in points:
            for key, row in self.holding.items():
                self.found[pid, key] += is_inside(x, y, row)
        self.past += points
        for row in words:
            asked = row.get("asked_at", 0)
            is_late = self.watermark is not None and asked < self.watermark
            if row["op"] != "snapshot" or is_late:
                continue
            start = asked - window_us + 1
            if tumbling:
                start = asked // window_us * window_us
            for pid, x, y, at in self.past:
                self.found[pid, row["id"]] += start <= at <= asked and is_inside(x, y, row)
        if points and window_us:
            newest = max(at for *_, at in points) - delay_us
            self.watermark = newest if self.watermark is None else max(newest, self.watermark)

    def pairs(self) -> Counter[tuple[int, int]]:
        return Counter({pair: count for pair, count in self.found.items() if count})


def random_tiles(route: TileRoute, rng: np.random.Generator) -> TileRoute:
    """The same map cut at random, some of its tiles shared."""
    side = route.grid.side
    tiles = [Tile(0, 0, side, side, (0,))]
    for _ in range(int(rng.integers(0, 12))):
        tile = tiles.pop(int(rng.integers(len(tiles))))
        if tile.rows > 1 and (tile.columns == 1 or rng.random() < 0.5):
            tiles += tile.split(row=int(rng.integers(tile.top + 1, tile.bottom)))
        elif tile.columns > 1:
            tiles += tile.split(column=int(rng.integers(tile.left + 1, tile.right)))
        else:
            tiles.append(tile)
    given = []
    for tile in tiles:
        many = int(rng.integers(1, route.count + 1)) if rng.random() < 0.3 else 1
        given.append(tile.given(rng.permutation(route.count)[:many].tolist()))
    return TileRoute(route.grid, route.count, tuple(given))


@dataclass(frozen=True)
class Restless(TilePolicy):
    """Cuts the map anew after every batch."""

    instances: int = 3
    cells: int = 8
    seed: int = 0

    def plan(self, snapshot: TileSnapshot, memory: Memory) -> Decision[TileRoute]:
        turn = memory.get("turn", 0) + 1
        rng = np.random.default_rng([self.seed, turn])
        return Decision(random_tiles(snapshot.route, rng), "restless", {"turn": turn})
