"""Runs a policy on a simulated cluster: tuples in, loads to the control loop, its routes back."""

from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter

import numpy as np
import numpy.typing as npt

from skewless.control.loads import BatchLoads
from skewless.control.loop import Clock, ControlLoop
from skewless.control.memory import Balance
from skewless.errors import bad_argument
from skewless.load.imbalance import imbalance
from skewless.load.resources import resources
from skewless.planning.fastjoin import FastJoin
from skewless.planning.policy import RoutingPolicy
from skewless.planning.snapshot import HotKey
from skewless.routing.entries import Entry
from skewless.routing.partitions import partition_of
from skewless.routing.route import Route
from skewless.routing.splits import Split
from skewless.routing.table import TableRoute
from skewless.simulate import kernel
from skewless.simulate.cluster import Cluster, Course
from skewless.simulate.costs import Costs
from skewless.simulate.routes import routes_of
from skewless.simulate.run import Look, Run
from skewless.simulate.streams import Arrivals, Streams

Floats = npt.NDArray[np.float64]

GAMMA = 0.5  # eq. 11
# Cores of a node are shared out anew this often; a chunk of tuples is never longer than this many.
SHARE_S = 0.1
CHUNK = 500_000


def simulate(
    policy: RoutingPolicy,
    streams: Streams,
    cluster: Cluster,
    costs: Costs,
    course: Course,
    rng: np.random.Generator,
    clock: Clock = perf_counter,
) -> Run:
    """One run. Equal arguments and generators give equal figures, planning times apart."""
    simulation = _Simulation(ControlLoop(policy, clock), streams, cluster, costs, course, rng)
    looks = []
    periods = max(1, round(course.duration_s / course.period_s))
    for period in range(periods):
        start_s = period * course.period_s
        simulation.serve(start_s, start_s + course.period_s)
        looks.append(simulation.look(start_s + course.period_s))
    return simulation.result(tuple(looks))


@dataclass
class _Simulation:
    loop: ControlLoop
    streams: Streams
    cluster: Cluster
    costs: Costs
    course: Course
    rng: np.random.Generator

    def __post_init__(self) -> None:
        policy = self.loop.policy
        if policy.needs_combinable:
            raise bad_argument("policy", policy, "a policy for joins, such as Mixed")
        if isinstance(policy.instances, tuple):
            raise bad_argument("policy", policy, "a fixed number of instances: the cluster has one")
        self.route = self.loop.start(self.cluster.instances)
        self.balance = Balance.initial(self.route.instances)
        if self.route.instances != self.cluster.instances:
            raise bad_argument(
                "policy", self.route.instances, f"a policy for {self.cluster.instances} instances"
            )
        self.first_owners = self.route.table.owners
        self.partition_of = partition_of(self.streams.hashes, self.route.partitions)
        self.ways = self._ways()
        self.prices = kernel.Prices(
            self.costs.kind == "index",
            self.costs.scope == "instance",
            self.costs.tuple_s,
            self.costs.compare_s,
            self.costs.match_s,
        )
        n = self.cluster.instances
        self.free_s = np.zeros(n)
        self.release_s = np.full(self.route.partitions, -np.inf)
        self.held = Arrivals(np.empty(0), np.empty(0, np.int32), np.empty(0, np.int8))
        self.work = self._no_work()
        self.busy_s = np.zeros(n)  # after the warm-up, stretched by shared cores
        self.done = self.arrived = self.copies = self.moved = 0
        self.latency_s: list[npt.NDArray[np.float32]] = []
        self._fill_window()

    def _ways(self) -> kernel.Routes:
        return routes_of(self.route, self.streams.hashes, self.partition_of)

    @property
    def entries(self) -> int:
        """Keys that the router must look up: those of the key table, split ones, and those that
        FastJoin has moved.

        A table of partitions is an array of fixed length, whatever has moved in it.
        """
        if isinstance(self.loop.policy, FastJoin):
            return int((self.route.table.owners != self.first_owners).sum())
        return len(_exceptions(self.route))

    def _no_work(self) -> kernel.Work:
        return kernel.empty_work(self.streams.keys, self.route.partitions, self.cluster.instances)

    def _nothing_stored(self) -> kernel.Stored:
        return kernel.empty_stored(
            self.streams.keys, self.route.partitions, self.ways, self.cluster.instances
        )

    def _draws(self, count: int) -> npt.NDArray[np.int64]:
        return self.rng.integers(0, 1 << 31, count)

    def _fill_window(self) -> None:
        old = self.streams.between(-self.course.window_s, 0.0, self.rng)
        self.log = kernel.with_room(None, len(old.key))
        self.stored = self._nothing_stored()
        kernel.fill(
            self.log, self.stored, self.ways, self.partition_of,
            old.time_s, old.key, old.side, self._draws(len(old.key)),
        )  # fmt: skip

    def serve(self, start_s: float, end_s: float) -> None:
        """Everything that is dispatched from `start_s` to `end_s`."""
        parts = -(-self.streams.rate * (end_s - start_s) // CHUNK)
        if self.cluster.nodes is not None:
            parts = max(parts, round((end_s - start_s) / SHARE_S))
        bounds = np.linspace(start_s, end_s, int(max(parts, 1)) + 1)
        for begin_s, until_s in pairwise(bounds):
            self._serve(float(begin_s), float(until_s))

    def _serve(self, start_s: float, end_s: float) -> None:
        new = self.streams.between(start_s, end_s, self.rng)
        tuples, dispatched_s = self._dispatch(new, end_s)
        count = len(tuples.key)
        draws = self._draws(count)
        self.log = kernel.with_room(self.log, count)
        room = count * int(self.ways.size.max())
        copy_of = np.empty(room, np.int64)
        copy_instance = np.empty(room, np.int64)
        copy_s = np.empty(room)
        before = self.work.by_instance.copy()
        copies = kernel.offer(
            dispatched_s, tuples.key, tuples.side, draws, self.log, self.stored, self.ways,
            self.partition_of, self.work, self.prices, self.course.window_s,
            copy_of, copy_instance, copy_s,
        )  # fmt: skip
        copy_of, copy_instance, copy_s = copy_of[:copies], copy_instance[:copies], copy_s[:copies]
        came_s = self.work.by_instance - before
        backlog_s = np.maximum(self.free_s - start_s, 0.0)
        factor = self.cluster.slowdown((came_s + backlog_s) / (end_s - start_s))
        if self.costs.exponential:
            copy_s = copy_s * self.rng.exponential(size=copies)
        arrived_s = dispatched_s + self.cluster.routing_delay_s(self.entries)
        done_s = np.zeros(count)
        kernel.serve(arrived_s, copy_of, copy_instance, copy_s, factor, self.free_s, done_s)
        self._measure(start_s, tuples, done_s, copies, came_s * factor)

    def _dispatch(self, new: Arrivals, end_s: float) -> tuple[Arrivals, Floats]:
        """What leaves the dispatcher by `end_s`, and when: tuples of a moving partition wait."""
        if not len(self.held.key) and self.release_s.max() <= end_s - self.course.period_s:
            return new, new.time_s
        waiting = Arrivals(
            np.concatenate([self.held.time_s, new.time_s]),
            np.concatenate([self.held.key, new.key]),
            np.concatenate([self.held.side, new.side]),
        )
        leaves_s = np.maximum(waiting.time_s, self.release_s[self.partition_of[waiting.key]])
        order = np.argsort(leaves_s, kind="stable")
        go = order[leaves_s[order] < end_s]
        stay = order[leaves_s[order] >= end_s]
        self.held = _rows(waiting, stay)
        tuples = _rows(waiting, go)
        return tuples, leaves_s[go]

    def _measure(
        self, start_s: float, tuples: Arrivals, done_s: Floats, copies: int, came_s: Floats
    ) -> None:
        in_time = (done_s > self.course.warm_up_s) & (done_s <= self.course.duration_s)
        self.done += int(in_time.sum())
        if start_s < self.course.warm_up_s - 1e-9:
            return
        self.arrived += len(tuples.key)
        self.copies += copies
        self.busy_s += came_s
        self.latency_s.append((done_s - tuples.time_s).astype(np.float32))

    def look(self, now_s: float) -> Look:
        """The controller's turn: measure, plan, change the route."""
        work = self.work
        loads = BatchLoads(
            load=work.by_partition * 1e3,
            rows=work.rows_by_partition.astype(np.float64),
            stored=self.stored.partition_rows.astype(np.float64),
            hot_keys=self._hot_keys(),
            work_ms=tuple((work.by_instance * 1e3).tolist()),
        )
        used = resources(
            self.stored.by_instance.astype(np.float64),
            work.rows_by_instance.astype(np.float64),
            GAMMA,
        )
        turn = self.loop.turn(self.route, self.balance, loads)
        self.balance = turn.balance
        moved = self._enact(turn.route, now_s)
        self.work = self._no_work()
        return Look(
            now_s,
            imbalance(used),
            imbalance(work.by_instance),
            moved,
            turn.reason,
            turn.plan_ms / 1e3,
        )

    def _hot_keys(self) -> tuple[HotKey, ...]:
        loads = self.work.by_key
        top = np.flatnonzero(loads)
        if len(top) > self.course.hot_keys:
            ranked = np.argpartition(loads[top], len(top) - self.course.hot_keys)
            top = top[ranked[len(top) - self.course.hot_keys :]]
        apart = _exceptions(self.route)
        if apart:
            hashes = np.array([key.hash for key in apart], np.uint64)
            top = np.union1d(top, np.flatnonzero(np.isin(self.streams.hashes, hashes)))
        top = top[np.argsort(-loads[top], kind="stable")]
        rows = self.work.rows_by_key
        return tuple(
            HotKey(
                int(self.streams.hashes[k]),
                int(self.partition_of[k]),
                float(loads[k]) * 1e3,
                int(rows[0, k]),
                int(rows[1, k]),
            )
            for k in top.tolist()
        )

    def _enact(self, route: Route, now_s: float) -> int:
        if route == self.route:
            return 0
        old, self.route = self.ways, route
        self.ways = self._ways()
        n = self.cluster.instances
        moved_out, moved_in = np.zeros(n, np.int64), np.zeros(n, np.int64)
        source_of = np.full(self.route.partitions, -1, np.int64)
        moved: int = kernel.relocate(
            self.log, old, self.ways, self.partition_of, self._draws(int(self.log.ends[1])),
            moved_out, moved_in, source_of,
        )  # fmt: skip
        self.stored = self._nothing_stored()
        kernel.recount(self.log, self.stored, self.ways, self.partition_of)
        # Both ends are busy with the move, which goes before what waits there; the dispatcher holds
        # back the tuples of what moves until its source has sent everything (§V-B). Tuples that
        # wait at the source already are served there.
        rows = moved_out + moved_in
        busy = rows > 0
        block_s = self.costs.migrate_s * rows
        self.free_s[busy] = np.maximum(self.free_s[busy], now_s) + block_s[busy]
        if now_s >= self.course.warm_up_s:
            self.busy_s += block_s
        moving = source_of >= 0
        self.release_s[moving] = now_s + block_s[source_of[moving]]
        self.moved += moved
        return moved

    def result(self, looks: tuple[Look, ...]) -> Run:
        span_s = looks[-1].time_s - self.course.warm_up_s
        latency_s = np.concatenate(self.latency_s)
        some = latency_s.size > 0
        utilisation = self.busy_s / span_s
        return Run(
            rate=self.arrived / span_s,
            throughput=self.done / span_s,
            utilisation=float(utilisation.max()),
            mean_utilisation=float(utilisation.mean()),
            mean_latency_s=float(latency_s.mean(dtype=np.float64)) if some else 0.0,
            p99_latency_s=float(np.quantile(latency_s, 0.99)) if some else 0.0,
            max_latency_s=float(latency_s.max()) if some else 0.0,
            copies=self.copies / max(self.arrived, 1),
            moved_rows=self.moved,
            entries=self.entries,
            looks=looks,
        )


def _exceptions(route: Route) -> tuple[Entry | Split, ...]:
    return route.exceptions if isinstance(route, TableRoute) else ()


def _rows(tuples: Arrivals, at: npt.NDArray[np.int64]) -> Arrivals:
    return Arrivals(tuples.time_s[at], tuples.key[at], tuples.side[at])
