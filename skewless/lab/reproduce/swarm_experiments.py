"""The experiments of the SWARM paper (§6): points, run for some seeds under all policies."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from skewless.lab.reproduce.swarm_maps import (
    SAMPLED_POINTS,
    SAMPLED_QUERIES,
    Scene,
    crowd_scene,
    file_scene,
)
from skewless.lab.workloads.hotspots import KINDS, QUERY_SIDE, Kind
from skewless.planning.replicated import Replicated
from skewless.planning.staticgrid import StaticGrid
from skewless.planning.swarm import Swarm
from skewless.planning.tiles.auto import AutoTiles
from skewless.planning.tiles.policy import TilePolicy
from skewless.simulate.tiles import Map, MapRun, ProbeCost, Stage, simulate_map

Experiment = Literal["queries", "hotspot", "exponent", "swing", "cells", "file"]
EXECUTORS = 22
REPLICATED_EXECUTORS = 30  # Replicated needs no routers
MILLION = 1_000_000
QUERIES = tuple(2**n * MILLION for n in range(7))
USUAL = 8 * MILLION
EXPONENTS = (0.0, 0.5, 1.0)
SWINGS = (0.0, 0.35, 0.7, 1.0)
CELLS = (32, 64, 128)
HOUR_ROUNDS = 240
HOTSPOT_ROUNDS = 160
# Latency is compared at the same rate for all: this share of what the history grid sustains.
SAME_RATE = 0.9
POLICIES = ("Swarm", "history grid", "uniform grid", "Replicated", "Auto")
# The probe of every exponent costs the same beside so many subscriptions.
_ALIKE_AT = USUAL / EXECUTORS


@dataclass(frozen=True)
class Point:
    """One value on the axis of one experiment."""

    experiment: Experiment
    at: float
    queries: int = USUAL
    rounds: int = HOUR_ROUNDS
    cells: int = 64
    kind: Kind | None = None
    exponent: float = 0.5
    swing: float = 0.7
    path: Path | None = None
    points: int = SAMPLED_POINTS

    @property
    def cost(self) -> ProbeCost:
        usual = ProbeCost()
        probe = usual.probe * _ALIKE_AT ** (usual.exponent - self.exponent)
        return replace(usual, exponent=self.exponent, probe=probe)

    @property
    def name(self) -> str:
        if self.path is not None:
            return self.path.stem
        return self.kind or f"{self.at:g}"

    def scene(self, seed: int) -> Scene:
        if self.path is not None:
            return file_scene(self.path, seed, rounds=self.rounds, cells=self.cells)
        return crowd_scene(
            seed,
            rounds=self.rounds,
            cells=self.cells,
            kind=self.kind,
            start_s=self.rounds * 15 / 4,
            length_s=self.rounds * 15 / 2,
            swing=self.swing,
            points=self.points,
        )


@dataclass(frozen=True)
class Outcome:
    """What a policy came to at a point with one seed; None where it ran out of memory."""

    work: float | None  # units of work, mean of the run
    execution_us: float | None  # mean time that an executor works on a point, at the highest rate
    latency_us: float | None  # execution and waiting, at the same rate for all
    utilisation: list[list[float]] = field(default_factory=list)  # per 5 min: mean, least, most
    series: list[float] = field(default_factory=list)  # units of work per minute
    queries: list[float] = field(default_factory=list)  # subscriptions per minute
    tiles: int = 0
    moves: float = 0.0  # rectangles per round, mean
    plan_ms: float = 0.0  # mean


@dataclass(frozen=True)
class Result:
    """All policies at a point with one seed."""

    point: Point
    seed: int
    outcomes: dict[str, Outcome]
    pictures: dict[str, Any] = field(default_factory=dict)  # tiles in the middle of the run

    def as_json(self) -> dict[str, Any]:
        point = self.point
        return {
            "experiment": point.experiment,
            "at": point.name,
            "queries": point.queries,
            "cells": point.cells,
            "exponent": point.exponent,
            "swing": point.swing,
            "seed": self.seed,
            "policies": {name: vars(outcome) for name, outcome in self.outcomes.items()},
        }


def points(*, quick: bool, files: tuple[Path, ...] = ()) -> Iterator[Point]:
    """Every point of every experiment; `quick` takes a few, and short runs."""
    usual = Point("queries", 0.0)
    if quick:
        usual = replace(usual, rounds=24, points=10_000, cells=32)
    for queries in (MILLION, 32 * MILLION) if quick else QUERIES:
        yield replace(usual, at=queries / MILLION, queries=queries)
    for number, kind in enumerate(KINDS):
        length = min(usual.rounds, HOTSPOT_ROUNDS)
        hot = replace(usual, experiment="hotspot", at=number, kind=kind)
        yield replace(hot, queries=MILLION, rounds=length)
    for exponent in (0.0, 1.0) if quick else EXPONENTS:
        yield replace(usual, experiment="exponent", at=exponent, exponent=exponent)
    if not quick:
        for swing in SWINGS:
            yield replace(usual, experiment="swing", at=swing, swing=swing)
        for cells in CELLS:
            yield replace(usual, experiment="cells", at=cells, cells=cells)
    for number, path in enumerate(files):
        yield replace(usual, experiment="file", at=number, queries=MILLION, path=path)


def policies(scene: Scene) -> dict[str, TilePolicy]:
    """The paper's four, and ours."""
    cells = scene.grid.side
    made = (
        Swarm(EXECUTORS, cells=cells),
        StaticGrid(EXECUTORS, history=scene.history, cells=cells),
        StaticGrid(EXECUTORS, cells=cells),
        Replicated(REPLICATED_EXECUTORS),
        AutoTiles(EXECUTORS, cells=cells),
    )
    return dict(zip(POLICIES, made, strict=True))


def perform(point: Point, seed: int) -> Result:
    """One point with one seed, under all policies."""
    scene = point.scene(seed)
    map_ = Map(scene.grid, max(1, point.queries // SAMPLED_QUERIES), QUERY_SIDE)
    middle = point.rounds // 2
    pictures: dict[str, Any] = {}

    def run(name: str, policy: TilePolicy, stage: Stage) -> MapRun:
        def watch(number: int, route: Any) -> None:
            if number == middle and point.kind is not None:
                pictures[name] = (route, scene.shown[number])

        return simulate_map(policy, map_, scene.rounds, cost=point.cost, stage=stage, watch=watch)

    made = policies(scene)
    full = {name: run(name, policy, Stage()) for name, policy in made.items()}
    sustained = full["history grid"].mean(lambda r: r.rate)
    same = Stage(most=SAME_RATE * sustained, first=SAME_RATE * sustained)
    equal = {name: run(name, policy, same) for name, policy in made.items()}
    outcomes = {name: _outcome(full[name], equal[name]) for name in made}
    return Result(point, seed, outcomes, pictures)


def _outcome(full: MapRun, equal: MapRun) -> Outcome:
    if full.out_of_memory or equal.out_of_memory:
        return Outcome(None, None, None)
    # Latency is that of the second half: a cold start is a matter of the timelines.
    half = len(equal.rounds) // 2
    latency = equal.mean(lambda r: r.execution_us + 1e3 * r.waiting_ms, half)
    minutes = [full.rounds[i : i + 4] for i in range(0, len(full.rounds), 4)]
    parts = [full.rounds[i : i + 20] for i in range(0, len(full.rounds), 20)]
    busy = [np.mean([r.utilisation for r in part], axis=0) for part in parts]
    return Outcome(
        work=full.mean(lambda r: r.work),
        execution_us=full.execution_us,
        latency_us=latency,
        utilisation=[[float(b.mean()), float(b.min()), float(b.max())] for b in busy],
        series=[float(np.mean([r.work for r in minute])) for minute in minutes],
        queries=[float(np.mean([r.queries for r in minute])) for minute in minutes],
        tiles=full.rounds[-1].tiles,
        moves=full.mean(lambda r: r.moves),
        plan_ms=full.mean(lambda r: r.plan_ms),
    )
