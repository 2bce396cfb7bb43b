"""What Arrow would change silently is refused, at any depth, and named."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from skewless.operators.map.output import batch_of_rows
from skewless.operators.strict import OutputError, fitted

NESTED = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())])
MOMENT = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [
        (pa.int32(), 2.9, "x"),
        (pa.int64(), np.float64(4.7), "x"),
        (pa.int64(), Decimal("1.5"), "x"),
        (pa.int64(), float("nan"), "x"),
        (pa.float32(), 1e300, "x"),
        (MOMENT, 5, "x"),
        (pa.date32(), 5, "x"),
        (pa.string(), "\ud800", "x"),
        (pa.date32(), datetime(2024, 5, 1, 12, tzinfo=UTC), "x"),
        (pa.date32(), np.array([1, 2]), "x"),
        (pa.int64(), Decimal("NaN"), "x"),
        (pa.int64(), Decimal("1E+30"), "x"),
        (pa.map_(pa.string(), pa.int64()), 5, "x"),
        (pa.map_(pa.string(), pa.int64()), "text", "x"),
        (pa.map_(pa.string(), pa.int64()), [1, 2], "x"),
        (pa.list_(pa.int64()), np.array(5), "x"),
        (NESTED, np.array(5), "x"),
        (pa.list_(pa.int64()), [1, 12.5], "x.element"),
        (pa.map_(pa.string(), pa.int64()), {"k": 0.5}, "x.value"),
        (NESTED, {"a": 1, "bb": "x"}, "x"),
        (NESTED, {"a": 0.5}, "x.a"),
        (NESTED, {"b": "x"}, "x.a"),
        (pa.list_(pa.field("element", pa.int32(), nullable=False)), [None, 1], "x.element"),
        (pa.list_(NESTED), [{"a": None}], "x.element.a"),
        (pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)), {"k": None}, "value"),
    ],
)
def test_a_value_that_would_be_changed_is_refused(kind, value, name) -> None:
    with pytest.raises(OutputError, match=f"{name}'"):
        batch_of_rows([{"x": value}], pa.schema([("x", kind)]))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int32(), 3),
        (pa.int32(), np.int64(3)),
        (pa.int64(), 2.0),
        (pa.float32(), float("inf")),
        (pa.float64(), 7),
        (MOMENT, datetime(2024, 5, 1, tzinfo=UTC)),
        (pa.duration("us"), timedelta(seconds=1)),
        (pa.list_(pa.int64()), [1, None]),
        (pa.map_(pa.string(), pa.int64()), [("k", 1)]),
        (NESTED, {"a": 1, "b": None}),
        (NESTED, None),
        (pa.list_(NESTED), []),
    ],
)
def test_a_value_that_fits_is_kept(kind, value) -> None:
    found = batch_of_rows([{"x": value}, {"x": None}], pa.schema([("x", kind)]))
    assert found.column("x").to_pylist() == [value, None]


def test_fields_of_a_struct_are_found_by_their_names() -> None:
    schema = pa.schema([("x", pa.list_(pa.struct([("b", pa.int64()), ("a", pa.int32())])))])
    kind = pa.list_(pa.struct([("a", pa.int32()), ("c", pa.int32())]))
    batch = pa.record_batch({"x": pa.array([[{"a": 1, "c": 2}]], kind)})
    with pytest.raises(OutputError, match=r"x.element'.*'c'.*declares b, a"):
        fitted(batch, schema)
    short = pa.record_batch({"x": pa.array([[{"a": 1}]], pa.list_(pa.struct([("a", pa.int32())])))})
    with pytest.raises(OutputError, match=r"x.element'.*no field 'b'"):
        fitted(short, schema)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (pa.array([1.5, 1e300]), pa.float32()),
        (pa.array([1.25, 1.005]), pa.decimal128(10, 2)),
        (pa.array([1_700_000_000]), MOMENT),
        (pa.array([19_000], pa.int32()), pa.date32()),
        (pa.array([1, 5]), pa.bool_()),
        (pa.array([2.5]), pa.bool_()),
        (pa.array([datetime(2024, 5, 1, 12, tzinfo=UTC)]), pa.date32()),
        (pa.array([[1.0], [1e300]]), pa.list_(pa.float32())),
        (pa.array([{"a": 1, "b": 5}]), pa.struct([("a", pa.int64()), ("b", MOMENT)])),
    ],
)
def test_a_batch_whose_values_would_be_changed_is_refused(given, kind) -> None:
    with pytest.raises(OutputError, match="column 'x"):
        fitted(pa.record_batch({"x": given}), pa.schema([("x", kind)]))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (pa.array([1.5, None, float("inf"), float("nan")]), pa.float32()),
        (pa.array([0.1, None, 1.25]), pa.decimal128(10, 2)),
        (pa.array([datetime(2024, 5, 1, tzinfo=UTC), None]), pa.date32()),
        (pa.array([[1], None]), pa.list_(pa.float32())),
        (pa.array([True, None]), pa.int64()),
    ],
)
def test_a_batch_whose_values_stay_is_cast(given, kind) -> None:
    cast = fitted(pa.record_batch({"x": given}), pa.schema([("x", kind)])).column("x")
    assert cast.type == kind
    assert cast.null_count == given.null_count


def test_nulls_outside_of_a_slice_do_not_count() -> None:
    kind = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))
    loose = pa.map_(pa.string(), pa.int64())
    maps = pa.array([[("a", None)], None, [("b", 1)], []], loose)
    schema = pa.schema([("x", kind)])
    assert fitted(pa.record_batch({"x": maps.slice(1)}), schema).num_rows == 3
    with pytest.raises(OutputError, match=r"'x\.value'.*null"):
        fitted(pa.record_batch({"x": maps.slice(0, 2)}), schema)


def test_nulls_inside_are_found_in_batches_too() -> None:
    schema = pa.schema([("x", NESTED)])
    batch = pa.record_batch([pa.array([{"a": None, "b": "x"}, None], NESTED)], schema=schema)
    with pytest.raises(OutputError, match=r"'x\.a'.*null"):
        fitted(batch, schema)
    good = pa.record_batch([pa.array([{"a": 1, "b": None}, None], NESTED)], schema=schema)
    assert fitted(good, schema) is good


def test_money_as_fractions_fits_decimals() -> None:
    """As people write it: what is nearest to 19.99 is 19.99."""
    cents = np.arange(1, 100_001)
    money = pa.record_batch({"x": cents / 100})
    cast = fitted(money, pa.schema([("x", pa.decimal128(10, 2))]))
    assert cast.column("x").cast(pa.string()).to_pylist()[1998] == "19.99"
    with pytest.raises(OutputError, match=r"1\.005 does not fit the declared decimal"):
        fitted(pa.record_batch({"x": [1.25, 1.005]}), pa.schema([("x", pa.decimal128(10, 2))]))


@pytest.mark.parametrize(
    ("given", "declared"),
    [
        (
            pa.array([[(1, 1.5)]], pa.map_(pa.int64(), pa.float64())),
            pa.map_(pa.int64(), pa.decimal128(5, 0)),
        ),
        (pa.array([[1.5, 2.0]], pa.list_(pa.float64(), 2)), pa.list_(pa.decimal128(5, 0))),
        (pa.array([0], pa.timestamp("us")), pa.time64("us")),
    ],
    ids=["in a map", "in a list of fixed size", "a moment as a time of day"],
)
def test_no_loss_hides_at_any_depth(given, declared) -> None:
    with pytest.raises(OutputError, match="column 'x"):
        fitted(pa.record_batch({"x": given}), pa.schema([("x", declared)]))
