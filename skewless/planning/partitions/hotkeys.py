"""Which keys are too hot for one instance, and who shares them."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from skewless.planning.snapshot import HotKey, Loads, Snapshot
from skewless.routing.splits import Split, divisors, replicas

Numbers = npt.NDArray[np.int64]

# As shares of the room of an instance: its mean load, less what keys hotter than this one put on
# all instances. A key is split above SPLIT, so that each member gets at most SHARE, and folded back
# after PATIENCE rounds below FOLD. A key of a partition that no instance has room for is split
# earlier.
SPLIT = 0.75
SPLIT_IN_HEAVY_PARTITION = 0.5
SHARE = 0.5
FOLD = 0.35
PATIENCE = 2
# However much the hottest keys take, evening out what is left below this share gains nothing.
LEAST_ROOM = 0.2
# What a replica costs beside a row of its own: it is sorted and probed with, but not stored.
REPLICA = 0.5


@dataclass(frozen=True)
class SplitChoice:
    """The splits from now on, how many are new and how many gone, and for how many rounds each
    split key has been cool."""

    splits: tuple[Split, ...]
    cool_rounds: dict[int, int]
    split: int = 0
    folded: int = 0


def choose_splits(snapshot: Snapshot, loads: Loads, cool_rounds: dict[int, int]) -> SplitChoice:
    """Split what is hot, keep what is warm, fold back what has been cool for a while.

    `loads` is the load of every instance under the splits in force.
    """
    mean = room = float(loads.mean())
    if len(loads) < 2 or mean <= 0:
        return SplitChoice(snapshot.splits, cool_rounds)
    replica_cost = REPLICA * _row_cost(snapshot)
    current = {split.hash: split for split in snapshot.splits}
    unreported = [
        HotKey(split.hash, split.partition, 0.0, 0, 0)
        for split in snapshot.splits
        if split.hash not in {key.hash for key in snapshot.hot_keys}
    ]
    rest = snapshot.load.copy()
    loads = loads.copy()
    cool: dict[int, int] = {}
    chosen: list[Split] = []
    for key in sorted((*snapshot.hot_keys, *unreported), key=lambda key: (-key.load, key.hash)):
        split = current.get(key.hash)
        if split is None:
            heavy = rest[key.partition] > room
            if key.load <= room * (SPLIT_IN_HEAVY_PARTITION if heavy else SPLIT):
                continue
            loads[snapshot.table.owners[key.partition]] -= key.load
        else:
            if key.load < FOLD * room:
                cool[key.hash] = cool_rounds.get(key.hash, 0) + 1
                if cool[key.hash] >= PATIENCE:
                    del cool[key.hash]
                    continue
            loads[list(split.members)] -= key.load / len(split.members)
        wanted = _members_wanted(key, split, room, replica_cost, len(loads))
        if wanted < 2:
            loads[snapshot.table.owners[key.partition]] += key.load
            continue
        members = _members(split, wanted, loads)
        loads[members] += key.load / len(members)
        rest[key.partition] -= min(key.load, float(rest[key.partition]))
        if len(members) == len(loads):
            room = max(room - key.load / len(loads), LEAST_ROOM * mean)
        lines = _lines(key, split, len(members))
        chosen.append(Split(key.hash, key.partition, tuple(sorted(members)), lines))
    kept = {split.hash for split in chosen}
    return SplitChoice(
        _spread(chosen, {key.hash: key.load for key in snapshot.hot_keys}, len(loads), mean),
        cool,
        split=len(kept - current.keys()),
        folded=len(current.keys() - kept),
    )


def _row_cost(snapshot: Snapshot) -> float:
    """What a row costs apart from its matches: partitions with few of those show it."""
    busy = snapshot.queued > 0
    if not busy.any():
        return 0.0
    return float(np.quantile(snapshot.load[busy] / snapshot.queued[busy], 0.25))


def _members_wanted(
    key: HotKey, split: Split | None, room: float, replica_cost: float, instances: int
) -> int:
    """How many instances are to share a key; fewer than 2 if a new split would not pay.

    Replicas must cost less than the work that is taken off the key's own instance. More members
    than wanted are taken where they make a squarer grid, and so fewer replicas: 15 for 13. What is
    measured of a split key has the replicas in it, and must be told apart, or more members would
    ask for still more.
    """
    work = key.load
    if split is not None:
        sent = replicas(key.left_rows, key.right_rows, split.lines, split.columns)
        work = max(work - replica_cost * sent, 0.0)
    wanted = min(max(2, int(np.ceil(work / (SHARE * room)))), instances)
    counts = np.arange(1, instances + 1)
    fewest = _fewest_replicas(key, instances)
    pays = replica_cost * fewest <= work * (counts - 1) / counts
    pays[0] = False
    enough = np.flatnonzero(pays & (counts >= wanted))
    if enough.size:
        return int(counts[enough[fewest[enough].argmin()]])
    # A split that exists is ended by a cool key alone, not by an estimate that wavers.
    least = 1 if split is None else 2
    return int(counts[pays].max(initial=least))


def _fewest_replicas(key: HotKey, instances: int) -> Loads:
    """The number of replicas in the best grid of 1, 2, … members."""
    lines, columns, first = _grids(instances)
    sent = replicas(key.left_rows, key.right_rows, lines, columns)
    fewest: Loads = np.minimum.reduceat(sent.astype(np.float64), first)
    return fewest


@lru_cache(maxsize=8)
def _grids(instances: int) -> tuple[Numbers, Numbers, Numbers]:
    """Lines and columns of all grids of 1, 2, … members, and where those of each number begin."""
    lines = [np.array(divisors(n)) for n in range(1, instances + 1)]
    columns = [n // of for n, of in enumerate(lines, 1)]
    first = np.cumsum([0, *(len(of) for of in lines[:-1])])
    return np.concatenate(lines), np.concatenate(columns), first


def _members(split: Split | None, wanted: int, loads: Loads) -> list[int]:
    """Enough of the lightest instances. Members of a split stay; it gets more when its key has
    grown, and fewer when they are twice too many."""
    members = [] if split is None else list(split.members)
    lightest = loads.argsort(kind="stable")
    if wanted > len(members):
        others = lightest[~np.isin(lightest, members)]
        members += others[: wanted - len(members)].tolist()
    elif 2 * wanted < len(members):
        members = lightest[np.isin(lightest, members)][:wanted].tolist()
    return members


def _spread(
    splits: list[Split], loads: dict[int, float], instances: int, mean: float
) -> tuple[Split, ...]:
    """The splits with members exchanged where split keys alone are too much for an instance, as
    when instances were added. Nothing stored moves with a member."""
    spread = list(splits)
    each = [loads.get(split.hash, 0.0) / len(split.members) for split in spread]
    shares = np.zeros(instances)
    for split, share in zip(spread, each, strict=True):
        shares[list(split.members)] += share
    for _ in range(len(spread) * instances):
        high = int(shares.argmax())
        if shares[high] <= mean:
            break
        exchange = None
        for i in sorted(range(len(spread)), key=lambda i: -each[i]):
            if high in spread[i].members:
                free = np.setdiff1d(np.arange(instances), spread[i].members)
                low = int(free[shares[free].argmin()]) if free.size else high
                if shares[low] + each[i] < shares[high]:
                    exchange = i, low
                    break
        if exchange is None:
            break
        i, low = exchange
        members = sorted({*spread[i].members, low} - {high})
        spread[i] = replace(spread[i], members=tuple(members))
        shares[high] -= each[i]
        shares[low] += each[i]
    return tuple(spread)


def _lines(key: HotKey, split: Split | None, members: int) -> int:
    """The grid with the fewest replicas; one that exists stays unless it has twice as many."""

    def sent(lines: int) -> float:
        return float(replicas(key.left_rows, key.right_rows, lines, members // lines))

    best = min(divisors(members), key=sent)
    if split is None or len(split.members) != members:
        return best
    return best if 2 * sent(best) < sent(split.lines) else split.lines
