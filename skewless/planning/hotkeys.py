"""Which keys are too hot for one instance, and who shares them."""

from dataclasses import dataclass

import numpy as np

from skewless.planning.snapshot import HotKey, Loads, Snapshot
from skewless.routing.splits import Split

# As shares of the mean load of an instance. A key is split above SPLIT, so that each member gets
# about SHARE, and folded back after PATIENCE rounds below FOLD.
SPLIT = 0.5
SHARE = 0.25
FOLD = 0.25
PATIENCE = 2


@dataclass(frozen=True)
class SplitChoice:
    """The splits from now on, why, and for how many rounds each split key has been cool."""

    splits: tuple[Split, ...]
    cool_rounds: dict[int, int]
    split: int
    folded: int


def choose_splits(snapshot: Snapshot, loads: Loads, cool_rounds: dict[int, int]) -> SplitChoice:
    """Split what is hot, keep what is warm, fold back what has been cool for a while.

    `loads` is the load of every instance under the splits in force.
    """
    instances = len(loads)
    mean = float(loads.mean())
    if instances < 2 or mean <= 0:
        return SplitChoice(snapshot.splits, cool_rounds, 0, 0)
    current = {split.hash: split for split in snapshot.splits}
    keys = {key.hash: key for key in snapshot.hot_keys}
    loads = loads.copy()
    cool: dict[int, int] = {}
    chosen: list[Split] = []
    folded = 0
    for split in snapshot.splits:
        key = keys.get(split.hash)
        if key is None or key.load < FOLD * mean:
            cool[split.hash] = cool_rounds.get(split.hash, 0) + 1
            if cool[split.hash] >= PATIENCE:
                del cool[split.hash]
                folded += 1
                continue
            if key is None:
                chosen.append(split)
                continue
        chosen.append(_adjusted(split, keys[split.hash], loads, mean))
    fresh = [
        key
        for key in sorted(snapshot.hot_keys, key=lambda key: (-key.load, key.hash))
        if key.hash not in current and key.load > SPLIT * mean
    ]
    for key in fresh:
        loads[snapshot.table.owners[key.partition]] -= key.load
        members = _lightest(loads, _wanted(key.load, mean, instances))
        loads[members] += key.load / len(members)
        replicated = "left" if key.left_rows < key.right_rows else "right"
        chosen.append(Split(key.hash, key.partition, tuple(sorted(members)), replicated))
    return SplitChoice(tuple(chosen), cool, len(fresh), folded)


def _wanted(load: float, mean: float, instances: int) -> int:
    return min(max(2, int(np.ceil(load / (SHARE * mean)))), instances)


def _lightest(loads: Loads, count: int) -> list[int]:
    return [int(i) for i in loads.argsort(kind="stable")[:count]]


def _adjusted(split: Split, key: HotKey, loads: Loads, mean: float) -> Split:
    """The split with more members when its key has grown, fewer when they are twice too many."""
    wanted = _wanted(key.load, mean, len(loads))
    members = list(split.members)
    loads[members] -= key.load / len(members)
    if wanted > len(members):
        others = np.array([i for i in range(len(loads)) if i not in set(members)])
        more = others[loads[others].argsort(kind="stable")][: wanted - len(members)]
        members += more.tolist()
    elif 2 * wanted < len(members):
        members.sort(key=lambda member: float(loads[member]))
        members = members[:wanted]
    loads[members] += key.load / len(members)
    # The smaller side is the cheaper to replicate; near equality the choice stays as it was.
    replicated = split.replicated
    rows = {"left": key.left_rows, "right": key.right_rows}
    other = "left" if replicated == "right" else "right"
    if 2 * rows[other] < rows[replicated]:
        replicated = other
    return Split(split.hash, split.partition, tuple(sorted(members)), replicated)
