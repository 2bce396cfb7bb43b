"""Predicates on pairs against plain Python, with nulls, NaN and every type that is compared."""

import math
import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.kernels import predicate as p
from skewless.kernels.predicate import Predicate

NAN = float("nan")
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, -1, 0, 1, 127],
    pa.int64(): [-(2**63), -2, 0, 3, 2**63 - 1],
    pa.float32(): [-math.inf, -0.0, 0.0, 1.5, NAN, math.inf],
    pa.float64(): [-math.inf, -0.0, 0.0, 1.5, NAN, math.inf],
    pa.bool_(): [False, True],
    pa.string(): ["", "a", "B", "é", "\U0001f600", "\uffff"],
    pa.large_string(): ["", "a", "B"],
    pa.binary(): [b"", b"\x00", b"\x7f", b"\x80", b"\xff"],
    pa.decimal128(10, 2): [Decimal("-1.50"), Decimal("0.00"), Decimal("1.25")],
    pa.date32(): [date(1969, 12, 31), date(2024, 2, 29)],
    pa.timestamp("us", "UTC"): [datetime(1960, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)],
    pa.timestamp("us"): [datetime(1960, 1, 1), datetime(2024, 1, 1)],
    pa.duration("us"): [timedelta(days=-1), timedelta(microseconds=1)],
}


def order(value: Any) -> Any:
    """As Spark orders: NaN above all, text by its bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def compared(op: str, a: Any, b: Any) -> bool | None:
    if op == "<=>" and (a is None or b is None):
        return a is b
    if a is None or b is None:
        return None
    x, y = order(a), order(b)
    return {"=": x == y, "<=>": x == y, "<": x < y, "<=": x <= y}[op]


def evaluate(node: p.Node, left: Any, right: Any) -> Any:
    """The slow and obvious way, row by row; `left` and `right` are the values of the one column."""

    def of(inner: p.Node) -> Any:
        return evaluate(inner, left, right)

    match node:
        case p.Column(side, _):
            return left if side == "left" else right
        case p.Constant(value):
            return value.as_py()
        case p.Compare(op, a, b):
            return compared(op, of(a), of(b))
        case p.And(a, b):
            pair = (of(a), of(b))
            return False if False in pair else None if None in pair else True
        case p.Or(a, b):
            pair = (of(a), of(b))
            return True if True in pair else None if None in pair else False
        case p.Not(a):
            return None if of(a) is None else not of(a)
        case p.IsNull(a):
            return of(a) is None
        case p.Coalesce(operands):
            return next((v for v in map(of, operands) if v is not None), None)
        case p.Extreme(greatest, operands):
            known = [v for v in map(of, operands) if v is not None]
            best = (max if greatest else min)(known, key=order, default=None)
            return best
        case p.Case(branches, otherwise):
            return next((of(v) for c, v in branches if of(c) is True), of(otherwise))
    raise AssertionError(node)


LEFT, RIGHT = p.Column("left", "v"), p.Column("right", "v")


@st.composite
def nodes(draw: st.DrawFn, kind: pa.DataType, depth: int = 3) -> p.Node:
    """A condition over one column of each side."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        op = draw(st.sampled_from(["=", "<", "<=", "<=>"]))
        return p.Compare(op, draw(values(kind)), draw(values(kind)))
    inner = nodes(kind, depth - 1)
    which = draw(st.sampled_from([p.And, p.Or, p.Not, p.IsNull, p.Case, p.Coalesce]))
    if which in (p.And, p.Or):
        return which(draw(inner), draw(inner))
    if which is p.Case:
        return p.Case(((draw(inner), draw(inner)),), draw(inner))
    if which is p.Coalesce:
        return p.Coalesce((draw(inner), draw(inner)))
    return which(draw(inner))


@st.composite
def values(draw: st.DrawFn, kind: pa.DataType, depth: int = 1) -> p.Node:
    plain: list[p.Node] = [LEFT, RIGHT, LEFT, RIGHT]
    plain.append(p.Constant(pa.scalar(draw(st.sampled_from([None, *VALUES[kind]])), kind)))
    found = draw(st.sampled_from(plain))
    if depth == 0 or draw(st.integers(0, 2)):
        return found
    others = (found, draw(values(kind, 0)))
    which = draw(st.integers(0, 2))
    if which == 2:
        asked = p.Compare("<", draw(values(kind, 0)), draw(values(kind, 0)))
        return p.Case(((asked, others[0]),), others[1])
    return p.Coalesce(others) if which else p.Extreme(draw(st.booleans()), others)


@given(data=st.data(), kind=st.sampled_from(list(VALUES)))
@settings(max_examples=300)
def test_equals_plain_python(data, kind) -> None:
    node = data.draw(nodes(kind))
    column = st.lists(st.sampled_from([None, *VALUES[kind]]), min_size=1, max_size=6)
    left, right = data.draw(column), data.draw(column)
    at = [(i, j) for i in range(len(left)) for j in range(len(right))]
    held = Predicate(node).holds(
        pa.record_batch({"v": pa.array(left, kind)}),
        pa.record_batch({"v": pa.array(right, kind)}),
        np.array([i for i, _ in at]),
        np.array([j for _, j in at]),
    )
    expected = [evaluate(node, left[i], right[j]) is True for i, j in at]
    assert held.tolist() == expected, node


def holds(node: p.Node, left: list[Any], right: list[Any], kind: pa.DataType) -> list[bool]:
    rows = np.arange(len(left))
    batches = [pa.record_batch({"v": pa.array(side, kind)}) for side in (left, right)]
    return Predicate(node).holds(*batches, rows, rows).tolist()


def result(op: str, a: Any, b: Any, kind: pa.DataType, ansi: bool) -> Any:
    pairs = p.Pairs(
        pa.record_batch({"v": pa.array([a], kind)}),
        pa.record_batch({"v": pa.array([b], kind)}),
        np.array([0]),
        np.array([0]),
    )
    node = p.Arithmetic(op, LEFT, RIGHT, ansi, "left.v ? right.v")
    return node.values(pairs)[0].as_py()


@given(
    a=st.one_of(st.none(), st.integers(-128, 127)),
    b=st.one_of(st.none(), st.integers(-128, 127)),
    op=st.sampled_from(["+", "-", "*", "%"]),
    ansi=st.booleans(),
)
@settings(max_examples=300)
def test_whole_numbers_are_computed_as_in_spark(a, b, op, ansi) -> None:
    """Java's remainder has the sign of the dividend; what does not fit is an error, or wraps."""
    if a is None or b is None:
        assert result(op, a, b, pa.int8(), ansi) is None
        return
    if op == "%" and b == 0:
        exact = None
    else:
        exact = {"+": a + b, "-": a - b, "*": a * b, "%": int(math.fmod(a, b or 1))}[op]
    if ansi and (exact is None or not -128 <= exact <= 127):
        says = "division by zero" if exact is None else "does not fit into int8"
        with pytest.raises(SkewlessError, match=f"where: .*{says}"):
            result(op, a, b, pa.int8(), ansi)
        return
    wrapped = None if exact is None else (exact + 128) % 256 - 128
    assert result(op, a, b, pa.int8(), ansi) == wrapped


def test_fractions_divide_as_in_spark() -> None:
    assert result("/", 1.0, 4.0, pa.float64(), True) == 0.25
    assert result("%", -5.5, 2.0, pa.float64(), True) == -1.5
    assert result("/", 1.0, -0.0, pa.float64(), False) is None
    assert result("/", None, 0.0, pa.float64(), True) is None, "null before zero"
    with pytest.raises(SkewlessError, match=r"where: a division by zero in left\.v \? right\.v"):
        result("/", 1.0, 0.0, pa.float64(), True)
    least = -(2**63)
    assert result("%", least, -1, pa.int64(), True) == 0
    for op, other in (("-", 1), ("*", -1), ("+", -1)):
        with pytest.raises(SkewlessError, match="does not fit into int64"):
            result(op, least, other, pa.int64(), True)


def test_signs() -> None:
    for node in (p.Negative(LEFT), p.Absolute(LEFT)):
        with pytest.raises(SkewlessError, match="does not fit into int8"):
            holds(p.Compare("=", node, RIGHT), [-128], [0], pa.int8())
    assert holds(p.Compare("=", p.Negative(LEFT, False), RIGHT), [-128, 5], [-128, -5], pa.int8())
    assert holds(
        p.Compare("=", p.Absolute(LEFT), RIGHT), [-2.5, NAN], [2.5, NAN], pa.float64()
    ) == [
        True,
        True,
    ]


def test_what_is_kept_off_is_not_computed() -> None:
    """Where AND, OR, CASE or COALESCE has decided, what stands behind it may be an error."""
    quotient = p.Compare("<", p.Arithmetic("%", LEFT, RIGHT), LEFT)
    zero = p.Compare("=", RIGHT, p.Constant(pa.scalar(0, pa.int64())))
    left, right = [7, 7, 7], [0, 2, None]
    assert holds(p.And(p.Not(zero), quotient), left, right, pa.int64()) == [False, True, False]
    assert holds(p.Or(zero, quotient), left, right, pa.int64()) == [True, True, False]
    case = p.Case(((zero, zero),), quotient)
    assert holds(case, left, right, pa.int64()) == [True, True, False]
    known = p.Coalesce((LEFT, p.Arithmetic("%", LEFT, RIGHT)))
    assert holds(p.Compare("=", known, LEFT), left, right, pa.int64()) == [True] * 3


def test_numbers_are_widened_as_in_spark() -> None:
    wide = p.Compare("=", p.Convert(LEFT, pa.float64()), p.Convert(RIGHT, pa.float64()))
    assert holds(wide, [2**53, 1], [2**53 + 1, 2], pa.int64()) == [True, False]
    exact = [p.Convert(side, pa.decimal128(20, 0)) for side in (LEFT, RIGHT)]
    exact = [p.Convert(side, pa.decimal128(21, 1)) for side in exact]
    assert holds(p.Compare("<", *exact), [2**63 - 2, 5], [2**63 - 1, 5], pa.int64()) == [
        True,
        False,
    ]


def test_text_with_long_offsets_and_other_time_zones_meet() -> None:
    rows = np.array([0])
    same = Predicate(p.Compare("=", LEFT, RIGHT))
    text = [pa.record_batch({"v": pa.array(["a"], k)}) for k in (pa.string(), pa.large_string())]
    assert same.holds(*text, rows, rows).all()
    assert same.holds(*reversed(text), rows, rows).all()
    moments = [
        pa.record_batch({"v": pa.array([5], pa.timestamp("us", zone))})
        for zone in ("UTC", "Asia/Tokyo")
    ]
    assert same.holds(*moments, rows, rows).all()
    chosen = p.Compare("=", p.Coalesce((LEFT, RIGHT)), p.Extreme(True, (LEFT, RIGHT)))
    assert Predicate(chosen).holds(*text, rows, rows).all()


def test_huge_values_are_gathered_in_portions(monkeypatch) -> None:
    """A value of a hot key is in every pair; a thousand copies of it never exist at once."""
    monkeypatch.setattr(p, "_AT_ONCE_BYTES", 10_000)
    most = 0
    plain = p.Pairs.column

    def column(self: p.Pairs, side: str, name: str) -> pa.Array:
        nonlocal most
        found = plain(self, side, name)
        most = max(most, found.nbytes)
        return found

    monkeypatch.setattr(p.Pairs, "column", column)
    batch = pa.record_batch({"v": ["x" * 5_000, "y"]})
    rows = np.zeros(1_000, np.int64)
    held = Predicate(p.Compare("=", LEFT, RIGHT)).holds(batch, batch, rows, rows % 2)
    assert held.all()
    assert most <= 10_100


def test_names_pickling_and_no_pairs() -> None:
    node = p.And(p.Compare("<", p.Column("left", "a"), RIGHT), p.IsNull(p.Column("left", "b")))
    predicate = Predicate(p.Case(((node, p.Constant(pa.scalar(True))),), node))
    assert predicate.columns("left") == ("a", "b")
    renamed = predicate.renamed({"left": {"a": "s0", "b": "s1"}, "right": {"v": "k0"}})
    assert renamed.columns("left") == ("s0", "s1")
    assert renamed.columns("right") == ("k0",)
    assert pickle.loads(pickle.dumps(renamed)) == renamed
    none = np.zeros(0, np.int64)
    left = pa.record_batch({"s0": pa.array([], pa.string()), "s1": pa.array([], pa.string())})
    right = pa.record_batch({"k0": pa.array([], pa.string())})
    assert len(renamed.holds(left, right, none, none)) == 0
