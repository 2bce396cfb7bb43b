"""A condition on two rows, evaluated on whole arrays of pairs with SQL's three-valued logic."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from skewless.errors import SkewlessError
from skewless.kernels.ordering import IndexArray
from skewless.kernels.pieces import cuts, widened
from skewless.kernels.widths import bytes_at, varying_columns

Mask = npt.NDArray[np.bool_]
# Values of any size are gathered so many bytes at a time: one may be in all pairs of a hot key.
_AT_ONCE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Pairs:
    """Rows of two batches, pair by pair."""

    left: pa.RecordBatch
    right: pa.RecordBatch
    left_rows: IndexArray
    right_rows: IndexArray

    def __len__(self) -> int:
        return len(self.left_rows)

    def column(self, side: str, name: str) -> pa.Array:
        rows, at = (self.left, self.left_rows) if side == "left" else (self.right, self.right_rows)
        return rows.column(name).take(pa.array(at))

    def at(self, some: IndexArray) -> "Pairs":
        return replace(self, left_rows=self.left_rows[some], right_rows=self.right_rows[some])


@dataclass(frozen=True)
class Truth:
    """What holds of every pair: true, false, or neither of them, which is SQL's null."""

    true: Mask
    false: Mask

    @staticmethod
    def of(values: pa.Array) -> "Truth":
        true = _numbers(values).astype(np.bool_)
        known = _known(values)
        return Truth(true & known, ~true & known)

    def array(self) -> pa.Array:
        return pa.array(self.true, mask=~(self.true | self.false))


class Node(ABC):
    """A part of a condition. It has values; those of truth values are asked for as such."""

    @abstractmethod
    def values(self, pairs: Pairs) -> pa.Array:
        """The value of every pair."""

    def truth(self, pairs: Pairs) -> Truth:
        return Truth.of(self.values(pairs))

    @property
    def parts(self) -> tuple["Node", ...]:
        """The nodes right below this one."""
        return tuple(_nodes(getattr(self, f.name) for f in fields(self)))  # type: ignore[arg-type]

    def renamed(self, place: Callable[[str, str], str]) -> Self:
        """The same with columns under the names that `place(side, name)` gives."""
        changed = {f.name: _renamed(getattr(self, f.name), place) for f in fields(self)}  # type: ignore[arg-type]
        return replace(self, **changed)  # type: ignore[type-var]


class Logic(Node):
    """A node that is true, false or null."""

    @abstractmethod
    def truth(self, pairs: Pairs) -> Truth: ...

    def values(self, pairs: Pairs) -> pa.Array:
        return self.truth(pairs).array()


@dataclass(frozen=True)
class Column(Node):
    """A column of one side."""

    side: str
    name: str

    def values(self, pairs: Pairs) -> pa.Array:
        return pairs.column(self.side, self.name)

    def renamed(self, place: Callable[[str, str], str]) -> "Column":
        return Column(self.side, place(self.side, self.name))


@dataclass(frozen=True)
class Constant(Node):
    """The same value for all pairs."""

    value: pa.Scalar

    def values(self, pairs: Pairs) -> pa.Array:
        return pa.repeat(self.value, len(pairs))


@dataclass(frozen=True)
class Convert(Node):
    """Numbers as a type that holds them all, or as the fractions nearest to them."""

    of: Node
    kind: pa.DataType

    def values(self, pairs: Pairs) -> pa.Array:
        return self.of.values(pairs).cast(self.kind, safe=False)


@dataclass(frozen=True)
class Compare(Logic):
    """`=`, `<`, `<=` or the null-safe `<=>`, as Spark compares: NaN is NaN, above all numbers."""

    op: str
    first: Node
    second: Node

    def truth(self, pairs: Pairs) -> Truth:
        a, b = _alike([self.first.values(pairs), self.second.values(pairs)])
        both = _known(a) & _known(b)
        if self.op == "<=>":
            true = (_compared("=", a, b) & both) | ~(_known(a) | _known(b))
            return Truth(true, ~true)
        true = _compared(self.op, a, b)
        return Truth(true & both, ~true & both)


@dataclass(frozen=True)
class And(Logic):
    """Where the first is false, the second is not looked at: it may be what the first keeps off."""

    first: Node
    second: Node

    def truth(self, pairs: Pairs) -> Truth:
        first = self.first.truth(pairs)
        some, second = _where_open(self.second, pairs, ~first.false)
        true, false = first.true.copy(), first.false.copy()
        true[some] &= second.true
        false[some] |= second.false
        return Truth(true, false)


@dataclass(frozen=True)
class Or(Logic):
    """Where the first is true, the second is not looked at."""

    first: Node
    second: Node

    def truth(self, pairs: Pairs) -> Truth:
        first = self.first.truth(pairs)
        some, second = _where_open(self.second, pairs, ~first.true)
        true, false = first.true.copy(), first.false.copy()
        true[some] |= second.true
        false[some] &= second.false
        return Truth(true, false)


@dataclass(frozen=True)
class Not(Logic):
    """Null stays null."""

    of: Node

    def truth(self, pairs: Pairs) -> Truth:
        found = self.of.truth(pairs)
        return Truth(found.false, found.true)


@dataclass(frozen=True)
class IsNull(Logic):
    """Never null itself."""

    of: Node

    def truth(self, pairs: Pairs) -> Truth:
        known = _known(self.of.values(pairs))
        return Truth(~known, known)


@dataclass(frozen=True)
class Arithmetic(Node):
    """`+`, `-`, `*`, `/` or `%` of two numbers of one type, as Spark has them.

    `ansi`: a whole number that does not fit, and a division by zero, are errors. Without it whole
    numbers wrap around, and a division by zero is null.
    """

    op: str
    first: Node
    second: Node
    ansi: bool = True
    text: str = ""  # for messages

    def values(self, pairs: Pairs) -> pa.Array:
        a, b = self.first.values(pairs), self.second.values(pairs)
        if self.op in ("/", "%"):
            return self._divided(a, b)
        name = {"+": "add", "-": "subtract", "*": "multiply"}[self.op]
        return _exactly(name, self, a, b)

    def _divided(self, a: pa.Array, b: pa.Array) -> pa.Array:
        x, y = _numbers(a), _numbers(b)
        known = _known(a) & _known(b)
        zero = y == 0
        if self.ansi and (zero & known).any():
            raise SkewlessError(
                f"where: a division by zero in {self.text or self.op}; takes a divisor that is "
                "null instead: nullif(x, 0)"
            )
        known &= ~zero
        y = np.where(zero, y.dtype.type(1), y)
        with np.errstate(all="ignore"):
            if self.op == "/":
                found = x / y
            elif np.issubdtype(y.dtype, np.integer):
                # The least number by -1 does not fit; what is left of it does.
                found = np.fmod(x, np.where(y == -1, y.dtype.type(1), y))
            else:
                found = np.fmod(x, y)
        return pa.array(found.astype(y.dtype, copy=False), mask=~known)


@dataclass(frozen=True)
class Negative(Node):
    """The number with its sign changed."""

    of: Node
    ansi: bool = True
    text: str = ""

    def values(self, pairs: Pairs) -> pa.Array:
        return _exactly("negate", self, self.of.values(pairs))


@dataclass(frozen=True)
class Absolute(Node):
    """The number without its sign."""

    of: Node
    ansi: bool = True
    text: str = ""

    def values(self, pairs: Pairs) -> pa.Array:
        return _exactly("abs", self, self.of.values(pairs))


@dataclass(frozen=True)
class Extreme(Node):
    """The least or the greatest value that is not null."""

    greatest: bool
    operands: tuple[Node, ...]

    def values(self, pairs: Pairs) -> pa.Array:
        best, *others = _alike([operand.values(pairs) for operand in self.operands])
        for other in others:
            ahead = _compared("<", best, other) if self.greatest else _compared("<", other, best)
            better = _known(other) & (ahead | ~_known(best))
            best = pc.if_else(pa.array(better), other, best)
        return best


@dataclass(frozen=True)
class Coalesce(Node):
    """The first value that is not null; those behind it are not looked at."""

    operands: tuple[Node, ...]

    def values(self, pairs: Pairs) -> pa.Array:
        at: list[IndexArray] = []
        found: list[pa.Array] = []
        rest = np.arange(len(pairs))
        for operand in self.operands:
            values = operand.values(pairs.at(rest))
            known = _known(values)
            if operand is self.operands[-1]:
                known = np.ones(len(rest), np.bool_)
            at.append(rest[known])
            found.append(values.filter(pa.array(known)))
            rest = rest[~known]
        return _gathered(at, found)


@dataclass(frozen=True)
class Case(Node):
    """The value of the first branch whose condition is true; only that one is looked at."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node

    def values(self, pairs: Pairs) -> pa.Array:
        at: list[IndexArray] = []
        found: list[pa.Array] = []
        rest = np.arange(len(pairs))
        for condition, value in self.branches:
            taken = condition.truth(pairs.at(rest)).true
            at.append(rest[taken])
            found.append(value.values(pairs.at(at[-1])))
            rest = rest[~taken]
        at.append(rest)
        found.append(self.otherwise.values(pairs.at(rest)))
        return _gathered(at, found)


@dataclass(frozen=True)
class Predicate:
    """A condition on a left and a right row that have met.

    >>> cheap = Predicate(Compare("<", Column("left", "price"), Column("right", "limit")))
    >>> left, right = pa.record_batch({"price": [5, None]}), pa.record_batch({"limit": [9, 3]})
    >>> cheap.holds(left, right, np.array([0, 0, 1]), np.array([0, 1, 0])).tolist()
    [True, False, False]
    """

    root: Node

    def holds(
        self,
        left: pa.RecordBatch,
        right: pa.RecordBatch,
        left_rows: IndexArray,
        right_rows: IndexArray,
    ) -> Mask:
        """Of which pairs, by the numbers of their rows, the condition is true."""
        held = np.zeros(len(left_rows), np.bool_)
        for begin, end in self._portions(left, right, left_rows, right_rows):
            some = Pairs(left, right, left_rows[begin:end], right_rows[begin:end])
            held[begin:end] = self.root.truth(some).true
        return held

    def renamed(self, places: Mapping[str, Mapping[str, str]]) -> "Predicate":
        """The same with columns under other names, by side."""
        return Predicate(self.root.renamed(lambda side, name: places[side][name]))

    def columns(self, side: str) -> tuple[str, ...]:
        """The columns of a side that it looks at."""
        found: dict[str, None] = {}
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Column) and node.side == side:
                found[node.name] = None
            waiting += node.parts
        return tuple(sorted(found))

    def _portions(
        self,
        left: pa.RecordBatch,
        right: pa.RecordBatch,
        left_rows: IndexArray,
        right_rows: IndexArray,
    ) -> Iterator[tuple[int, int]]:
        """Ranges of pairs whose values may be gathered at once."""
        varying = [
            varying_columns(rows.select(list(self.columns(side))))
            for side, rows in (("left", left), ("right", right))
        ]
        if not any(varying) or not len(left_rows):
            yield 0, len(left_rows)
            return
        sizes = bytes_at(varying[0], left_rows) + bytes_at(varying[1], right_rows)
        yield from cuts(np.cumsum(sizes), _AT_ONCE_BYTES)


def _nodes(values: Any) -> Iterator[Node]:
    for value in values:
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from _nodes(value)


def _renamed(value: Any, place: Callable[[str, str], str]) -> Any:
    if isinstance(value, Node):
        return value.renamed(place)
    return tuple(_renamed(v, place) for v in value) if isinstance(value, tuple) else value


def _where_open(node: Node, pairs: Pairs, is_open: Mask) -> tuple[IndexArray, Truth]:
    """Which pairs are still undecided, and what a node says of them."""
    some = np.flatnonzero(is_open)
    return some, node.truth(pairs if len(some) == len(pairs) else pairs.at(some))


def _gathered(at: Sequence[IndexArray], found: Sequence[pa.Array]) -> pa.Array:
    """Values of some pairs each, in the order of all pairs."""
    place = np.argsort(np.concatenate(at), kind="stable")
    return pa.concat_arrays(_alike(found)).take(pa.array(place))


def _alike(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Arrays of one type of Spark as one type of Arrow: offsets may be long, time zones differ."""
    kind = arrays[0].type
    if all(a.type == kind for a in arrays):
        return list(arrays)
    if any(kinds.is_large_string(a.type) or kinds.is_large_binary(a.type) for a in arrays):
        kind = widened(kind)
    return [a if a.type == kind else a.cast(kind) for a in arrays]


def _known(values: pa.Array) -> Mask:
    if not values.null_count:
        return np.ones(len(values), np.bool_)
    known: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return known


def _numbers(values: pa.Array) -> npt.NDArray[Any]:
    """Values as numpy has them, moments as whole numbers; a null is any of them."""
    kind = values.type
    if kinds.is_date32(kind) or kinds.is_time32(kind):
        values = values.view(pa.int32())
    elif kinds.is_temporal(kind):
        values = values.view(pa.int64())
    if values.null_count:
        values = values.fill_null(False if kinds.is_boolean(kind) else 0)
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers


def _is_plain(kind: pa.DataType) -> bool:
    whole = kinds.is_integer(kind) or kinds.is_boolean(kind) or kinds.is_temporal(kind)
    return bool(whole or kinds.is_floating(kind))


def _compared(op: str, a: pa.Array, b: pa.Array) -> Mask:
    """What a comparison says of values of one type; of nulls it may say anything."""
    if not _is_plain(a.type):
        # Text and bytes are compared byte by byte, as Spark does.
        function = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal}[op]
        found: Mask = function(a, b).fill_null(False).to_numpy(zero_copy_only=False)
        return found
    x, y = _numbers(a), _numbers(b)
    if op == "=":
        plain = x == y
    elif op == "<":
        plain = x < y
    else:
        plain = x <= y
    if kinds.is_floating(a.type):
        # NaN is equal to itself, and greater than all numbers.
        above = np.isnan(y)
        plain |= above & np.isnan(x) if op == "=" else above
        if op == "<":
            plain &= ~np.isnan(x)
    return plain


def _exactly(name: str, node: Arithmetic | Negative | Absolute, *operands: pa.Array) -> pa.Array:
    """Arithmetic of whole numbers tells of results that do not fit, if it is to."""
    whole = all(kinds.is_integer(o.type) for o in operands)
    try:
        return pc.call_function(f"{name}_checked" if node.ansi and whole else name, list(operands))
    except pa.ArrowInvalid as failure:
        raise SkewlessError(
            f"where: {node.text or name} does not fit into {operands[0].type}; takes a wider type: "
            "cast what it is computed from"
        ) from failure
