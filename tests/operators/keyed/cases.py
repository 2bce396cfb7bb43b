"""Batches for keyed operators: few distinct values, so that ties and late rows are common."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from skewless.control.loop import Balance
from skewless.operators.keyed.windows import SessionWindow, Windows
from skewless.routing.partitions import PartitionTable
from skewless.routing.route import Route
from skewless.testing.local import spread_hash
from skewless.testing.local_keyed import LocalKeyed
from tests.routing.cases import table_route

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("g", pa.int32()),
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("d", pa.decimal128(10, 2)),
        ("s", pa.string()),
    ]
)
# Half of the event times are before 1970: windows are aligned to the epoch from below, too.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(seconds=30)
SECOND = 1_000_000

keys = st.sampled_from(["", "x", "y", "hot", "hot", "hot", None])
groups = st.sampled_from([0, 0, 0, 1, None])
values = st.one_of(st.none(), st.integers(-5, 5))
rows = st.tuples(keys, groups, st.integers(0, 40), values)


def table(drawn: list[tuple[str | None, int | None, int, int | None]], shift: int = 0) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "k": k,
                "g": g,
                "t": EPOCH + timedelta(seconds=s + shift),
                "i": v,
                "f": None if v is None else float("nan") if v == 5 else v / 2,
                "d": None if v is None else Decimal(v * 7) / 4,
                "s": None if v is None else f"s{v % 4}",
            }
            for k, g, s, v in drawn
        ],
        SCHEMA,
    )


@st.composite
def batches(draw: st.DrawFn) -> list[pa.Table]:
    count = draw(st.integers(1, 6))
    return [table(draw(st.lists(rows, max_size=14)), 8 * n) for n in range(count)]


windows = st.one_of(
    st.integers(1, 20).map(lambda s: Windows(s * SECOND, s * SECOND)),
    st.tuples(st.integers(1, 20), st.integers(1, 20)).map(
        lambda p: Windows(max(p) * SECOND, min(p) * SECOND)
    ),
)
sessions = st.integers(1, 12).map(lambda s: SessionWindow(f"{s} seconds"))
delays = st.integers(0, 15)


def poor_hash(keys: pa.Table) -> np.ndarray:
    """Collides: all keys share three hashes, and the keys must tell them apart."""
    lengths = [len(str(row)) % 3 for row in zip(*keys.to_pydict().values(), strict=True)]
    return np.array(lengths, np.uint64) << np.uint64(62)


@st.composite
def routes(draw: st.DrawFn, most_members: int = 4) -> Route:
    """Random tables, and keys that are split or have an entry of their own."""
    instances = draw(st.integers(1, 5))
    partitions = draw(st.sampled_from([5, 16]))
    owners = draw(st.lists(st.integers(0, instances - 1), min_size=partitions, max_size=partitions))
    hot = draw(st.lists(st.sampled_from(["", "x", "y", "hot", None]), unique=True, max_size=3))
    keys = pa.table({"k": pa.array(hot, pa.string()), "g": pa.array([0] * len(hot), pa.int32())})
    hashes = spread_hash(keys)
    exceptions = []
    for h in hashes.tolist():
        members = draw(
            st.lists(st.integers(0, instances - 1), unique=True, min_size=1, max_size=most_members)
        )
        lines = draw(st.sampled_from([None, len(members)]))
        exceptions.append((h, tuple(members), lines))
    return table_route(PartitionTable(instances, tuple(owners)), exceptions)


class Restless(LocalKeyed):
    """Takes another route in every batch, whatever the policy says."""

    ways: tuple[Route, ...] = ()

    def step(self, number: int, batch: pa.Table) -> None:
        way = self.ways[number % len(self.ways)]
        operator = self.operator
        plain = operator.adopt

        def adopt(state, cores):
            planner = {**state.planner, "balance": Balance.initial(way.instances).to_json()}
            return replace(state, route=way, planner=planner)

        object.__setattr__(operator, "adopt", adopt)
        try:
            super().step(number, batch)
        finally:
            object.__setattr__(operator, "adopt", plain)
