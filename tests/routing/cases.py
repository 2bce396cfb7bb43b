"""Routes at random: of every kind, with entries and split keys."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from skewless.routing.entries import Entry
from skewless.routing.grid import GridRoute
from skewless.routing.groups import GroupRoute
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.route import Route
from skewless.routing.splits import Split, divisors
from skewless.routing.table import TableRoute

Key = tuple[int, tuple[int, ...], int | None]  # hash, members, lines; None: an entry


def table_route(table: PartitionTable, keys: Sequence[Key] = ()) -> TableRoute:
    """A table with these exceptions; a key with a single member is an entry, whatever its lines."""
    places = partition_of(np.array([h for h, _, _ in keys], np.uint64), table.partitions).tolist()
    entries, splits = [], []
    for (h, members, lines), place in zip(keys, places, strict=True):
        if lines is None or len(members) == 1:
            entries.append(Entry(h, place, members))
        else:
            splits.append(Split(h, place, members, lines))
    return TableRoute(table, tuple(entries), tuple(splits))


def random_route(
    kind: str, table: PartitionTable, hashes: Sequence[int], rng: np.random.Generator
) -> Route:
    """A route of a kind; "entries", "splits" and "mixed" are tables with such exceptions."""
    if kind == "groups":
        return GroupRoute(table, int(rng.integers(1, table.instances + 1)))
    if kind == "grid":
        return GridRoute(table)
    keys: list[Key] = []
    for h in [] if kind == "table" else hashes:
        members = rng.permutation(table.instances)[: rng.integers(1, table.instances + 1)]
        lines = int(rng.choice(divisors(len(members))))
        entry = kind == "entries" or (kind == "mixed" and rng.random() < 0.5)
        # Rows of an entry visit no other member, so in a join it has one.
        keys.append((h, tuple(members[: 1 if entry else None].tolist()), None if entry else lines))
    return table_route(table, keys)


KINDS = ("table", "entries", "splits", "mixed", "groups", "grid")


@st.composite
def routes(
    draw: st.DrawFn,
    hashes: Sequence[int],
    most: int = 6,
    partitions: Sequence[int] = (3, 8),
    kinds: Sequence[str] = KINDS,
) -> Route:
    """Any route of a join over up to `most` instances."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    instances = draw(st.integers(1, most))
    owners = rng.integers(0, instances, draw(st.sampled_from(partitions)))
    chosen = draw(st.lists(st.sampled_from(hashes), unique=True)) if hashes else []
    table = PartitionTable(instances, tuple(owners.tolist()))
    return random_route(draw(st.sampled_from(kinds)), table, chosen, rng)
