"""Aggregates in parts: any split of the rows into partials gives what all rows at once give."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.kernels.aggregates import FUNCTIONS, aggregate_of, result_type
from skewless.kernels.groups import Groups

NUMBERS = {
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "double": (pa.float64(), st.sampled_from([0.0, 0.5, -2.0, float("nan"), float("inf")])),
    "decimal": (
        pa.decimal128(9, 2),
        st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    ),
}
OTHERS = {
    "text": (pa.string(), st.sampled_from(["", "ä", "b", "bb"])),
    "bytes": (pa.binary(), st.sampled_from([b"", b"\x00", b"b"])),
    "flag": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "moment": (pa.timestamp("us", "UTC"), st.integers(-(2**40), 2**40)),
}
KINDS = {**NUMBERS, **OTHERS}


def contiguous(ids: list[int]) -> Groups:
    order = np.argsort(np.array(ids), kind="stable")
    in_order = np.array(ids)[order]
    return Groups(order, np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]])))


def plain(value: object) -> object:
    return repr(sorted(value, key=repr)) if isinstance(value, list) else repr(value)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_partials_merge_to_the_whole(function: str, kind: str, data: st.DataObject) -> None:
    arrow, values = KINDS[kind]
    if function in ("sum", "mean") and kind not in NUMBERS:
        with pytest.raises(SkewlessError, match="numeric"):
            result_type(function, arrow)
        return
    drawn = data.draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.one_of(st.none(), values)), min_size=1, max_size=12
        )
    )
    parts = data.draw(st.lists(st.integers(0, 2), min_size=len(drawn), max_size=len(drawn)))
    aggregate = aggregate_of(function, arrow)
    column = pa.array([v for _, v in drawn], arrow)
    times = np.arange(len(drawn))

    def partial(ids: list[int], rows: list[int]) -> list[pa.Array]:
        groups = contiguous(ids)
        order = np.array(rows)[groups.order]
        return aggregate.partial(column.take(pa.array(order)), times[order], groups)

    ids = [g for g, _ in drawn]
    whole = aggregate.finish(partial(ids, list(range(len(drawn)))))
    state: list[list[pa.Array]] = []
    owners: list[int] = []
    for part in sorted(set(parts)):
        rows = [i for i, p in enumerate(parts) if p == part]
        mine = [ids[i] for i in rows]
        state.append(partial(mine, rows))
        owners += sorted(set(mine))
    groups = contiguous(owners)
    stacked = [pa.concat_arrays(columns) for columns in zip(*state, strict=True)]
    merged = aggregate.merge([c.take(pa.array(groups.order)) for c in stacked], groups)
    assert [c.type for c in merged] == list(aggregate.state)
    found = aggregate.finish(merged)
    assert found.type == result_type(function, arrow)
    assert list(map(plain, found.to_pylist())) == list(map(plain, whole.to_pylist()))


@pytest.mark.parametrize(
    ("function", "kind", "result"),
    [
        ("count", pa.string(), pa.int64()),
        ("count", None, pa.int64()),
        ("sum", pa.int8(), pa.int64()),
        ("sum", pa.float32(), pa.float64()),
        ("sum", pa.decimal128(10, 2), pa.decimal128(20, 2)),
        ("sum", pa.decimal128(35, 2), pa.decimal128(38, 2)),
        ("mean", pa.int64(), pa.float64()),
        ("mean", pa.decimal128(10, 2), pa.decimal128(14, 6)),
        ("mean", pa.decimal128(38, 36), pa.decimal128(38, 38)),
        ("min", pa.date32(), pa.date32()),
        ("max", pa.string(), pa.string()),
        ("approx_count_distinct", pa.string(), pa.int64()),
        ("collect_list", pa.int16(), pa.list_(pa.int16())),
        ("collect_set", pa.string(), pa.list_(pa.string())),
    ],
)
def test_result_types_are_sparks(function, kind, result) -> None:
    assert result_type(function, kind) == result


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        ("median", pa.int64(), "one of count"),
        ("sum", None, "only"),
        ("mean", pa.string(), "numeric"),
        ("max", pa.list_(pa.int64()), "not nested"),
        ("collect_set", pa.struct([("a", pa.int64())]), "not nested"),
    ],
)
def test_what_has_no_result_is_refused(function, kind, message) -> None:
    with pytest.raises(SkewlessError, match=message):
        result_type(function, kind)


ONE = Groups(np.arange(3), np.array([0]))


def of(function: str, values: pa.Array) -> object:
    aggregate = aggregate_of(function, values.type)
    return aggregate.finish(aggregate.partial(values, np.arange(3), ONE))[0].as_py()


def test_nan_is_above_every_number() -> None:
    values = pa.array([1.0, float("nan"), 2.0])
    assert of("min", values) == 1.0
    assert repr(of("max", values)) == repr(of("sum", values)) == "nan"


def test_a_sum_that_does_not_fit_is_refused_and_one_that_just_fits_is_not() -> None:
    top = 2**63 - 1
    assert of("sum", pa.array([top, 5, -5])) == top
    assert of("sum", pa.array([-top - 1, None, 0])) == -top - 1
    with pytest.raises(SkewlessError, match="bigint"):
        of("sum", pa.array([top, 1, 0]))
    with pytest.raises(SkewlessError, match="bigint"):
        of("sum", pa.array([-top - 1, -1, 0]))
    with pytest.raises(SkewlessError, match="decimal"):
        of("sum", pa.array([Decimal(9 * 10**37)] * 3, pa.decimal128(38, 0)))


@pytest.mark.parametrize(
    ("values", "mean"),
    [(["0.01", "0.01", "0.00"], "0.006667"), (["-0.01", "-0.01", "0.00"], "-0.006667")],
)
def test_the_mean_of_decimals_is_rounded_half_up(values, mean) -> None:
    column = pa.array([Decimal(v) for v in values], pa.decimal128(10, 2))
    assert of("mean", column) == Decimal(mean)


def test_the_mean_of_decimals_has_no_more_digits_than_there_are() -> None:
    column = pa.array([Decimal("0.1"), Decimal("0.2"), None], pa.decimal128(38, 36))
    assert of("mean", column) == Decimal("0.15")


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_a_set_has_one_zero_and_one_nan(kind) -> None:
    odd = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0], np.uint64).view(np.float64)
    found = of("collect_set", pa.array(odd, pa.float64(), from_pandas=False).cast(kind))
    assert sorted(map(repr, found)) == ["0.0", "nan"]
    assert list(map(repr, of("collect_set", pa.array([0.0, -0.0, 0.0], kind)))) == ["0.0"]


def test_a_list_is_by_event_time() -> None:
    aggregate = aggregate_of("collect_list", pa.string())
    values = pa.array(["c", "a", "b"])
    assert aggregate.partial(values, np.array([9, 1, 5]), ONE)[0].to_pylist() == [["a", "b", "c"]]
