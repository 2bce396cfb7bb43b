"""Algorithm 1 of Ls-Stream: which partitions leave a straggler, by simulated annealing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.load.benefit import latency_benefit, migration_impact, resource_benefit
from skewless.planning.snapshot import Loads

Units = npt.NDArray[np.int64]

# The flips of a temperature, as many as there are partitions, are shared by chains that run side
# by side: one numpy call flips a flag in each. Beyond the most steps, more partitions get no more,
# and a straggler with very many has fewer chains.
CHAINS, FEWEST_CHAINS = 64, 4
MOST_STEPS = 4
MOST_FLAGS_OF_ONE = 2**18
MOST_FLAGS = 2**20
# Impact factors have the units of the load, so the temperature is a multiple of the first one.
LAST_TEMPERATURE = 0.01


@dataclass(frozen=True)
class Straggler:
    """A straggler, the instance that is to relieve it, and the straggler's partitions.

    Loads are resources R (eq. 11), rates are rows per batch, and `rows` what a move would carry.
    """

    load: float
    load_of_lightest: float
    rate: float
    rate_of_lightest: float
    loads: Loads
    rates: Loads
    rows: Loads


def choose_migrations(
    stragglers: Sequence[Straggler],
    ceiling: float,
    cooling: float,
    rng: np.random.Generator,
) -> list[Units]:
    """For each straggler the positions of the partitions to move, none if no move is feasible.

    A migration must keep the straggler no lighter than its partner (eq. 31) and, if it can, bring
    it below `ceiling` = R̄·(1 + α) (eq. 30); of those that do, the one with the largest impact
    factor (eq. 25) is kept. Where none can, the one that relieves the straggler most is.
    """
    chosen: dict[int, Units] = {}
    for batch in _batches([len(s.loads) for s in stragglers]):
        chains = _Chains([stragglers[i] for i in batch], ceiling, rng)
        chains.anneal(cooling)
        chosen.update(zip(batch, chains.best(), strict=True))
    return [chosen[i] for i in range(len(stragglers))]


def _batches(sizes: list[int]) -> list[list[int]]:
    """Stragglers to anneal together: of similar size, because the arrays are as wide as the widest,
    and no more than memory should hold."""
    batches: list[list[int]] = []
    for i in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        if batches and (len(batches[-1]) + 1) * CHAINS * sizes[i] <= MOST_FLAGS:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


class _Chains:
    """Annealing of all stragglers at once: arrays are (stragglers, chains[, partitions])."""

    def __init__(
        self, stragglers: Sequence[Straggler], ceiling: float, rng: np.random.Generator
    ) -> None:
        self._rng = rng
        # A partition that alone breaks eq. 31 can be in no solution; one without load brings none.
        self._units = [
            np.flatnonzero((s.loads > 0) & (2 * s.loads < s.load - s.load_of_lightest))
            for s in stragglers
        ]
        self._counts = np.array([[len(units)] for units in self._units])
        self.partitions = int(self._counts.max())
        width = max(self.partitions, 1)
        self.count = max(FEWEST_CHAINS, min(CHAINS, MOST_FLAGS_OF_ONE // width))
        padded = np.zeros((3, len(stragglers), width))
        for i, (s, units) in enumerate(zip(stragglers, self._units, strict=True)):
            for plane, values in enumerate((s.loads, s.rates, s.rows)):
                padded[plane, i, : len(units)] = values[units]
        self._values = padded
        self._high = np.array([[s.load] for s in stragglers])
        self._gap = self._high - np.array([[s.load_of_lightest] for s in stragglers])
        self._ceiling = ceiling
        self._rate_high = np.array([[s.rate] for s in stragglers])
        self._rate_low = np.array([[s.rate_of_lightest] for s in stragglers])
        # How fast an instance could go is not measured; one that could take over everything of its
        # partner keeps every sojourn time finite. Processors are alike (the paper's assumption 3).
        self._service = np.maximum((self._rate_high + self._rate_low) / 0.95, 1.0)
        self._flags = self._first_solutions()
        # Sums over the migrated partitions: load, rate, rows.
        self._sums = np.einsum("bcn,pbn->pbc", self._flags, self._values)
        self._impact, self._relieved = self._judge(self._sums)
        self._scale = np.maximum(np.abs(self._impact).max(axis=1, keepdims=True), 1e-300)
        self._best_flags = self._flags.copy()
        self._best_impact = np.where(self._relieved, self._impact, -np.inf)
        self._best_load = self._sums[0].copy()

    def _first_solutions(self) -> npt.NDArray[np.bool_]:
        """Random flags, taken in a random order while eq. 31 still holds.

        As printed, lines 9–13 would empty the solution: before anything has moved, a straggler
        breaks eq. 30 by definition.
        """
        loads = self._values[0]
        shape = (len(loads), self.count, loads.shape[1])
        order = self._rng.random(shape).argsort(axis=2)
        wanted = self._rng.random(shape) < 0.5
        in_order = np.take_along_axis(loads[:, None, :], order, axis=2) * wanted
        fits = 2 * in_order.cumsum(axis=2) < self._gap[:, :, None]
        flags = np.zeros(shape, np.bool_)
        np.put_along_axis(flags, order, wanted & fits & (in_order > 0), axis=2)
        return flags

    def _judge(self, sums: Loads) -> tuple[Loads, npt.NDArray[np.bool_]]:
        """The impact factor (eq. 25) and whether the straggler is relieved (eq. 30)."""
        load, rate, rows = sums
        latency = latency_benefit(
            self._rate_high, self._rate_low, rate, self._service, self._service
        )
        impact = migration_impact(resource_benefit(load), latency, rows)
        return impact, self._high - load < self._ceiling

    def anneal(self, cooling: float) -> None:
        """Lines 15–30, from the first temperature to the last."""
        steps = min(-(-self.partitions // self.count), MOST_STEPS)
        temperature = 1.0
        while temperature > LAST_TEMPERATURE:
            for _ in range(steps):
                self.flip(temperature)
            temperature *= cooling

    def flip(self, temperature: float) -> None:
        """Lines 16–28: one partition of every chain changes its mind, if that is accepted."""
        shape = self._impact.shape
        position = (self._rng.random(shape) * self._counts).astype(np.int64)
        straggler, chain = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
        flag = self._flags[straggler, chain, position]
        sums = self._sums + np.where(flag, -1, 1) * self._values[:, straggler, position]
        impact, relieved = self._judge(sums)
        # Eq. 31, and something has to move. As printed, line 20 lets either condition do; the
        # text wants both.
        feasible = (2 * sums[0] < self._gap) & (sums[0] > 1e-12 * self._gap)
        with np.errstate(over="ignore"):
            chance = np.exp((impact - self._impact) / (self._scale * temperature))  # eq. 32
        better = self._rng.random(shape) < chance  # a larger impact has a chance above 1
        # Until eq. 30 holds, whatever comes nearer to it is accepted.
        accepted = feasible & np.where(
            self._relieved, relieved & better, relieved | (sums[0] > self._sums[0])
        )
        rows, columns = np.nonzero(accepted)
        self._flags[rows, columns, position[rows, columns]] ^= True
        self._sums[:, rows, columns] = sums[:, rows, columns]
        self._impact[rows, columns] = impact[rows, columns]
        self._relieved[rows, columns] = relieved[rows, columns]
        self._remember(rows, columns)

    def _remember(self, rows: Units, columns: Units) -> None:
        """Keep the best solution that each of these chains has met."""
        impact = np.where(self._relieved[rows, columns], self._impact[rows, columns], -np.inf)
        load = self._sums[0, rows, columns]
        best = self._best_impact[rows, columns]
        improved = (impact > best) | (np.isneginf(best) & (load > self._best_load[rows, columns]))
        rows, columns = rows[improved], columns[improved]
        self._best_flags[rows, columns] = self._flags[rows, columns]
        self._best_impact[rows, columns] = impact[improved]
        self._best_load[rows, columns] = load[improved]

    def best(self) -> list[Units]:
        chosen = []
        for i, units in enumerate(self._units):
            impacts = self._best_impact[i]
            chain = int(
                self._best_load[i].argmax() if np.isneginf(impacts).all() else impacts.argmax()
            )
            chosen.append(units[np.flatnonzero(self._best_flags[i, chain, : len(units)])])
        return chosen
