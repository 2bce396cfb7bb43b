"""Subscriptions without Spark: the same tasks, state and commits, driven in this process."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.engine.columns import (
    ACTION,
    ADD,
    BOX,
    IDENTITY,
    LEFT_CODE,
    ORDER,
    REMOVE,
    REPLICA,
    RIGHT_CODE,
    SIDE,
    SNAPSHOT,
    TIME,
    UNKNOWN,
    X,
    Y,
    slot_name,
)
from skewless.operators.subscribe.layout import POINTS, QUERIES, Layout, OutputColumn
from skewless.operators.subscribe.operator import SubscribeOperator
from skewless.operators.subscribe.shapes import CircleShape, RectangleShape, Shape
from skewless.operators.subscribe.window import PastWindow
from skewless.planning.tiles.auto import AutoTiles
from skewless.planning.tiles.policy import TilePolicy
from skewless.routing.cells import CellGrid
from skewless.routing.route import Route, Visits, scaled
from skewless.routing.tiles import TileRoute
from skewless.state.watermark import Delays
from skewless.testing.local import Batch, LocalQuery, spread_hash

_ACTIONS = {"add": ADD, "change": ADD, "remove": REMOVE, "snapshot": SNAPSHOT}
_RECTANGLE = ("x_min", "y_min", "x_max", "y_max")
_CIRCLE = ("x", "y", "radius")


@dataclass
class LocalSubscribe(LocalQuery[Batch]):
    """Micro-batches of points (pid, x, y, and at where there is a window) and of subscriptions.

    Subscriptions have an id, and x_min, y_min, x_max, y_max or, with `circles`, x, y, radius. They
    come and go if `changes`: then they have an op, and where there is a window asked_at.
    """

    policy: TilePolicy = field(default_factory=lambda: AutoTiles(instances=2, cells=8))
    bounds: tuple[float, float, float, float] = (0.0, 0.0, 100.0, 100.0)
    changes: bool = False
    circles: bool = False
    window: PastWindow | None = None
    delay_us: int = 0

    def _new_operator(self) -> SubscribeOperator:
        self._pid, self._id = slot_name(0), slot_name(1)
        self._circle = tuple(slot_name(2 + n) for n in range(3)) if self.circles else ()
        shape: Shape = RectangleShape()
        if self.circles:
            shape = CircleShape((self._circle[0], self._circle[1], self._circle[2]))
        output = [
            OutputColumn("pid", POINTS, self._pid),
            OutputColumn("x", POINTS, X),
            OutputColumn("y", POINTS, Y),
            *([OutputColumn("at", POINTS, TIME)] if self.window else []),
            OutputColumn("id", QUERIES, self._id),
        ]
        of_shape = zip(_RECTANGLE, BOX, strict=True)
        if self.circles:
            of_shape = zip(_CIRCLE, self._circle, strict=True)
        layout = Layout(
            output=tuple(output),
            shape=shape,
            point_slots=(self._pid,),
            query_slots=(self._id, *self._circle),
            id=self._id,
            changes=self.changes,
            inputs={
                POINTS: (("pid", self._pid), ("x", X), ("y", Y)),
                QUERIES: (("id", self._id), *of_shape),
            },
        )
        return SubscribeOperator(
            layout=layout,
            grid=CellGrid(self.policy.cells, self.bounds),
            policy=self.policy,
            fingerprint={"operator": "subscribe", "shape": "circle" if self.circles else "box"},
            window=self.window,
            delays=Delays({POINTS: self.delay_us} if self.window else {}),
            limits=self.limits,
        )

    @property
    def output_schema(self) -> pa.Schema:
        kinds = {"pid": pa.int64(), "x": pa.float64(), "y": pa.float64(), "id": pa.int64()}
        kinds["at"] = pa.timestamp("us", "UTC")
        return pa.schema([(c.name, kinds[c.name]) for c in self.operator.layout.output])

    def _sent(self, batch: Batch, route: Route) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        assert isinstance(route, TileRoute), "points are routed by tiles"
        points, queries = batch
        sent, instances = self._points(points, route)
        if not queries.num_rows:
            return sent, instances
        asked, where = self._queries(queries, route)
        codes = np.full(len(instances), LEFT_CODE, np.int8)
        sent = sent.add_column(0, SIDE, pa.array(codes))
        both = pa.concat_tables([sent, asked], promote_options="default")
        return both, np.concatenate([instances, where])

    def _points(self, points: pa.Table, route: TileRoute) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        rows = {X: points.column("x"), Y: points.column("y"), self._pid: points.column("pid")}
        if self.window is not None:
            rows[TIME] = points.column("at")
        # Where coordinates are null or NaN, any cell will do.
        x, y = (np.nan_to_num(points.column(axis).to_numpy(), nan=0.0) for axis in ("x", "y"))
        hashes = route.grid.hashes(route.grid.cells(x, y))
        return pa.table(rows), route.homes("left", hashes, spread_hash(points))

    def _queries(
        self, queries: pa.Table, route: TileRoute
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        rows: dict[str, pa.Array] = dict(zip(BOX, self._boxes(queries), strict=True))
        rows[self._id] = queries.column("id")
        for slot, name in zip(self._circle, _CIRCLE if self.circles else (), strict=True):
            rows[slot] = queries.column(name)
        edges = [np.nan_to_num(edge.to_numpy(), nan=0.0) for edge in list(rows.values())[:4]]
        left, right = (route.grid.columns(edge) for edge in (edges[0], edges[2]))
        top, bottom = (route.grid.rows(edge) for edge in (edges[1], edges[3]))
        visits = route.reached(top, left, bottom, right)
        row, where, is_home = visits.row, visits.instance, visits.home
        if self.changes:
            return self._changing(queries, rows, route, visits)
        code = np.where(is_home, RIGHT_CODE, RIGHT_CODE + REPLICA).astype(np.int8)
        sent = pa.table(rows).take(pa.array(row))
        return sent.add_column(0, SIDE, pa.array(code)), where

    def _changing(
        self, queries: pa.Table, rows: dict[str, pa.Array], route: TileRoute, visits: Visits
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """Whole to the tiles that they reach; the others hear that an earlier one has ended."""
        count = queries.num_rows
        action = np.array([_ACTIONS.get(a, UNKNOWN) for a in queries.column("op").to_pylist()])
        identity = self.hash_keys(queries.select(["id"]))
        rows = {**rows, IDENTITY: pa.array(identity.view(np.int64))}
        rows |= {ACTION: pa.array(action.astype(np.int8)), ORDER: pa.array(np.arange(count))}
        if self.window is not None:
            rows[TIME] = queries.column("asked_at")
        edges = np.array([rows[edge].to_numpy(zero_copy_only=False) for edge in BOX])
        reaches = np.zeros((count, route.instances), np.bool_)
        reaches[visits.row, visits.instance] = True
        home = np.zeros(count, np.int64)
        home[visits.row[visits.home]] = visits.instance[visits.home]
        missing = np.isnan(edges[0])
        home = np.where(missing, scaled(identity, route.instances), home)
        reaches[missing] = False
        reaches[np.arange(count), home] = True
        proper = (edges[0] <= edges[2]) & (edges[1] <= edges[3])
        short = ~pc.is_null(queries.column("id")).to_numpy()
        short &= (action == REMOVE) | ((action == ADD) & proper)
        row, where = np.nonzero(reaches | (action != SNAPSHOT)[:, None])
        is_short = short[row] & ~reaches[row, where]
        sent = pa.table(rows).take(pa.array(row))
        nothing = {n: pa.scalar(None, sent.schema.field(n).type) for n in (*BOX, *self._circle)}
        nothing[ACTION] = pa.scalar(REMOVE, pa.int8())
        for name, value in nothing.items():
            told = pc.if_else(pa.array(is_short), value, sent.column(name))
            sent = sent.set_column(sent.schema.get_field_index(name), name, told)
        code = np.where(where == home[row], RIGHT_CODE, RIGHT_CODE + REPLICA).astype(np.int8)
        return sent.add_column(0, SIDE, pa.array(code)), where

    def _boxes(self, queries: pa.Table) -> list[pa.Array]:
        if not self.circles:
            return [queries.column(name) for name in _RECTANGLE]
        x, y, radius = (queries.column(name).to_numpy() for name in _CIRCLE)
        reach = radius * 1.000000001 + (np.abs(x) + np.abs(y)) * 1e-15
        reach = np.where(np.isfinite(reach) & (radius >= 0), reach, np.nan)
        return [pa.array(edge) for edge in (x - reach, y - reach, x + reach, y + reach)]
