"""Simulated executors that match points with subscriptions on a map, round by round."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument
from skewless.load.corners import CornerCounts
from skewless.load.lines import fade
from skewless.planning.tiles.plan import TilePlan
from skewless.planning.tiles.policy import TilePolicy
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import TileRoute

Reals = npt.NDArray[np.float64]
# Waiting by chance is counted up to a load of 99 %; beyond it, queues grow by themselves.
_NEVER_FULL = 0.01


@dataclass(frozen=True)
class ProbeCost:
    """What a point costs an executor, in microseconds: `fixed` + `probe` · n^`exponent` + `match`
    per match, where n is the number of subscriptions in the index of the point's tile.

    A subscription that arrives or moves costs `insert` where it goes, and `send` where it leaves.
    """

    fixed: float = 10.0
    probe: float = 0.5
    exponent: float = 0.5
    match: float = 0.02
    insert: float = 5.0
    send: float = 1.0

    def __post_init__(self) -> None:
        for name in ("fixed", "probe", "exponent", "match", "insert", "send"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise bad_argument(name, value, "a finite number of at least 0")

    def of_points(self, queries: Reals, matches: Reals) -> Reals:
        """The cost of a point beside so many subscriptions, of which so many match."""
        return self.fixed + self.probe * queries**self.exponent + self.match * matches


@dataclass(frozen=True)
class Stage:
    """How fast points may come, and what holds them back.

    Sources send no more than keeps the work that waits for any executor below `backlog_s`: the
    slowest one holds all of them back. While it does, the rate falls towards what they can send, to
    `cuts` of itself per second at most; otherwise it rises by `raises` per second. All routers
    together pass on `most` points per second. An executor has memory for `holds` subscriptions.

    A point waits for the work that is queued before it, and for points that come by chance at the
    same time: ρ/(1 − ρ) service times where an executor is busy for a share ρ of the time.
    """

    round_s: int = 15
    most: float = 800_000.0
    first: float = 5_000.0
    raises: float = 0.05
    cuts: float = 0.9
    backlog_s: float = 1.0
    holds: float = 20e6


@dataclass(frozen=True, eq=False)
class MapRound:
    """What happens on the map in a round: the share of the points in every cell, and the
    subscriptions that come and go. One of them stands for `Map.scale`."""

    shares: Reals
    arrived: CornerCounts
    gone: CornerCounts


@dataclass(frozen=True)
class Map:
    """A map whose subscriptions are a sample: each stands for `scale`. They are squares of
    `query_side`, as a share of the map's side."""

    grid: CellGrid
    scale: int
    query_side: float


@dataclass(frozen=True, eq=False)
class RoundResult:
    """What a round came to."""

    rate: float  # points per second, mean of the round
    queries: float  # live subscriptions
    execution_us: float  # mean time that an executor works on a point
    waiting_ms: float  # mean time that a point waits for its executor
    utilisation: Reals  # of every executor, 0 to 1
    held: float  # subscriptions in the fullest executor
    tiles: int
    moves: int
    plan_ms: float

    @property
    def work(self) -> float:
        """Units of work: subscriptions × points per second."""
        return self.queries * self.rate


@dataclass(frozen=True, eq=False)
class MapRun:
    """All rounds of a run, and the last tiles. It ends early where an executor has no memory."""

    rounds: tuple[RoundResult, ...]
    route: TileRoute
    out_of_memory: bool

    def mean(self, value: Callable[[RoundResult], float], first: int = 0) -> float:
        """The mean of a value over the rounds, from `first` on."""
        return float(np.mean([value(r) for r in self.rounds[first:]]))

    @property
    def execution_us(self) -> float:
        """The mean over all points, not over rounds."""
        points = np.array([r.rate for r in self.rounds])
        times = np.array([r.execution_us for r in self.rounds])
        return float((times * points).sum() / points.sum())


def simulate_map(
    policy: TilePolicy,
    map_: Map,
    rounds: Iterable[MapRound],
    *,
    cost: ProbeCost,
    stage: Stage,
    clock: Callable[[], float] = perf_counter,
    watch: Callable[[int, TileRoute], None] | None = None,
) -> MapRun:
    """Run a policy over rounds. `watch` is shown the tiles of every round.

    The decision after a round holds from the next one on, and moved subscriptions are work for
    those who send and those who take them.
    """
    grid = map_.grid
    route = policy.tiles(grid, 1)
    memory: dict[str, object] = {}
    queues = np.zeros(route.count)  # seconds of work that wait
    rate = stage.first
    faded: Reals | None = None
    live = CornerCounts.empty(grid.side)
    results: list[RoundResult] = []
    for number, happens in enumerate(rounds):
        arrived = _scaled(happens.arrived, map_.scale)
        live = live + arrived - _scaled(happens.gone, map_.scale)
        held = _per_tile(route, live)
        queues = queues + 1e-6 * cost.insert * _all_members(route, _per_tile(route, arrived))
        costs = cost.of_points(held[route.tile_of_cell], _matches(map_, live))
        work = _shared(route, happens.shares * costs) * 1e-6  # seconds per point of the stream
        flow = _flow(stage, rate, work, queues, _shared(route, happens.shares))
        rate, queues = flow.last_rate, flow.queues
        fullest = float(_all_members(route, held).max())
        if fullest > stage.holds:
            return MapRun(tuple(results), route, True)
        points = happens.shares * flow.rate * stage.round_s
        faded = fade(faded, points)
        snapshot = TileSnapshot(route, points * costs * 1e-3, points, faded, live, arrived)
        started = clock()
        decision = policy.plan(snapshot, memory)
        plan_ms = 1e3 * (clock() - started)
        plan = decision.plan
        assert isinstance(plan, TilePlan), "policies for maps decide by plans"
        plan.check(snapshot, policy.limits(grid.count))
        queues = queues + _moving(plan, snapshot, cost)
        if watch is not None:
            watch(number, route)
        results.append(
            RoundResult(
                rate=flow.rate,
                queries=float(live.total),
                execution_us=float((happens.shares * costs).sum()),
                waiting_ms=1e3 * flow.wait_s,
                utilisation=flow.busy,
                held=fullest,
                tiles=len(route.tiles),
                moves=len(plan.moves),
                plan_ms=plan_ms,
            )
        )
        memory = decision.memory
        route = decision.route or route
    return MapRun(tuple(results), route, False)


def _scaled(counts: CornerCounts, scale: int) -> CornerCounts:
    return CornerCounts(counts.side, counts.corners * scale)


def _per_tile(route: TileRoute, counts: CornerCounts) -> Reals:
    """The subscriptions that meet every tile."""
    top, left, bottom, right = np.array([tile.ends for tile in route.tiles], np.int64).T
    return counts.meeting(top, left, bottom - 1, right - 1).astype(np.float64)


def _all_members(route: TileRoute, values: Reals) -> Reals:
    """The sum per executor of a value per tile that every member has in full."""
    sums = np.zeros(route.count)
    for tile, value in zip(route.tiles, values.tolist(), strict=True):
        sums[list(tile.members)] += value
    return sums


def _shared(route: TileRoute, values: Reals) -> Reals:
    """The sum per executor of a value per cell that members share."""
    per_tile = np.bincount(route.tile_of_cell, values, len(route.tiles))
    sums = np.zeros(route.count)
    for tile, value in zip(route.tiles, per_tile.tolist(), strict=True):
        sums[list(tile.members)] += value / len(tile.members)
    return sums


def _matches(map_: Map, live: CornerCounts) -> Reals:
    """The subscriptions that a point of a cell matches: their density in the cell × their area.

    They are taken to lie evenly within a cell.
    """
    in_a_cell = live.corners[0].ravel().astype(np.float64)
    matches: Reals = in_a_cell * (map_.query_side * map_.grid.side) ** 2
    return matches


@dataclass(frozen=True, eq=False)
class _Flow:
    """A round in steps of a second."""

    last_rate: float
    rate: float  # mean
    queues: Reals  # at the end
    busy: Reals  # share of the time, per executor
    wait_s: float  # of a point, mean


def _flow(stage: Stage, rate: float, work: Reals, queues: Reals, points: Reals) -> _Flow:
    """A round with so much work per point of the stream, and such shares of the points."""
    busy = np.zeros(len(work))
    rates, waits = [], []
    service = np.divide(work, points, out=np.zeros(len(work)), where=points > 0)
    for _ in range(stage.round_s):
        # In this second, an executor works off 1 s and may be left with `backlog_s`.
        room = np.maximum(stage.backlog_s + 1 - queues, 0.0)
        sent = min(rate, float((room[work > 0] / work[work > 0]).min(initial=np.inf)))
        wanted = queues + sent * work
        done = np.minimum(wanted, 1.0)
        chance = service * done / np.maximum(1 - done, _NEVER_FULL)
        waits.append(float((points * (queues + chance)).sum()))
        queues = wanted - done
        busy += done
        rates.append(sent)
        held_back = sent < rate
        rate = max(sent, stage.cuts * rate) if held_back else (1 + stage.raises) * rate
        rate = min(rate, stage.most)
    wait_s = float(np.average(waits, weights=rates)) if sum(rates) else float(queues.max())
    return _Flow(rate, float(np.mean(rates)), queues, busy / stage.round_s, wait_s)


def _moving(plan: TilePlan, snapshot: TileSnapshot, cost: ProbeCost) -> Reals:
    """Seconds of work for executors that hand subscriptions over, or take them."""
    work = np.zeros(plan.route.count)
    if plan.moves:
        queries = snapshot.counts(tuple(move.cells for move in plan.moves)).queries
        for move, count in zip(plan.moves, queries.tolist(), strict=True):
            newcomers = [m for m in move.target if m not in move.source]
            if newcomers:
                work[newcomers] += 1e-6 * cost.insert * count
                work[move.source[0]] += 1e-6 * cost.send * count * len(newcomers)
    return work
