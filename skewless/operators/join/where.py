"""Splits the condition `where=` of a join: what one side needs alone is computed by Spark.

Every largest piece of the text that refers to one side becomes a column of that side, computed by
Spark SQL before the shuffle. What is left are operators between the two sides. The tasks evaluate
these on arrays of pairs, in the types that Spark would have used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from skewless.errors import SkewlessError
from skewless.kernels import predicate as p
from skewless.operators.join.bounds import LEFT, RIGHT, SIDES
from skewless.operators.join.grammar import ARITHMETIC, Part, read
from skewless.operators.join.sides import BOTH, INSTEAD, Keys, Sides, scopes_of, unquoted
from skewless.runtime import types
from skewless.runtime.analysis import AddedColumns, Analyser, NotAnalysedError
from skewless.runtime.dispatch import SideColumns
from skewless.runtime.inputs import Input

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


@dataclass(frozen=True)
class Where:
    """A condition on pairs: columns that both sides get for it, and what the tasks evaluate."""

    text: str
    predicate: p.Predicate  # on the columns of the inputs, and on those that are added
    added: dict[str, AddedColumns]  # by side
    kinds: dict[str, Any]  # the types of added columns

    def extra(self, side: str) -> list[tuple[str, Any]]:
        """Names and types of the columns that a side gets."""
        return [(name, self.kinds[name]) for name, _ in self.added[side].columns]

    def described(self) -> list[str]:
        """For the query's fingerprint: stored rows have columns of these types."""
        return [self.text, *(kind.simpleString() for kind in self.kinds.values())]

    def bound(self, left: SideColumns, right: SideColumns) -> p.Predicate:
        """What the tasks evaluate, on the columns of the common stream."""
        return self.predicate.renamed(
            {
                side: {name: columns.travels_as(name) for name in self.predicate.columns(side)}
                for side, columns in ((LEFT, left), (RIGHT, right))
            }
        )


def where_of(
    session: Any,
    inputs: tuple[Input, Input],
    keys: Keys,
    where: object,
    *,
    keys_are_common: bool = False,
) -> Where | None:
    """Reads and splits a condition; an error says what is wrong with it.

    `keys_are_common`: left keys travel in the type in which both sides are compared.
    """
    if where is None:
        return None
    text = read(where)
    analyser = Analyser(session, (inputs[0].schema, inputs[1].schema), *scopes_of(inputs, keys))
    sides = Sides(str(where), text, inputs, analyser)
    sides.check()
    return _Splitting(sides, analyser, keys, keys_are_common).done()


@dataclass(frozen=True)
class _Operand:
    """A piece with its type; it is made once it is known what it has to be cast to."""

    kind: Any
    made: Callable[[Sequence[str]], p.Node]
    is_constant: bool = False


# What has to be true for a piece to be needless, by side: Spark would not evaluate it either.
_Guards = tuple[tuple[str, str], ...]


@dataclass
class _Splitting:
    """One pass over the tree of a condition."""

    sides: Sides
    analyser: Analyser
    keys: Keys
    keys_are_common: bool
    added: dict[str, dict[str, str]] = field(default_factory=lambda: {s: {} for s in SIDES})
    kinds: dict[str, Any] = field(default_factory=dict)

    def done(self) -> Where:
        root = self._truth(self.sides.text.root, ())
        scopes = self.analyser.scopes
        return Where(
            self.sides.where.strip(),
            p.Predicate(root),
            {
                scope.side: AddedColumns(
                    scope, tuple((name, sql) for sql, name in self.added[scope.side].items())
                )
                for scope in scopes
            },
            self.kinds,
        )

    def _operand(self, part: Part, guards: _Guards) -> _Operand:
        owner = self.sides.owner(part)
        text = self.sides.text.of(part)
        if owner is None:
            kind = self.analyser.kind(None, text)
            return _Operand(kind, lambda casts: self._constant(text, casts), True)
        if owner in SIDES:
            kind = self.analyser.kind(owner, text)
            return _Operand(kind, lambda casts: self._computed(part, owner, kind, casts, guards))
        kind, node = self._between_sides(part, guards)
        return _Operand(kind, lambda casts: self._converted(part, kind, node, casts))

    def _constant(self, text: str, casts: Sequence[str]) -> p.Node:
        sql = _cast(text, casts)
        kind = self.analyser.kind(None, sql)
        try:
            return p.Constant(self.analyser.constant(sql, kind))
        except NotAnalysedError as failure:
            raise SkewlessError(f"where: Spark does not take {text!r}: {failure}") from None

    def _computed(
        self, part: Part, side: str, kind: Any, casts: Sequence[str], guards: _Guards
    ) -> p.Node:
        """A column of one side: one that travels anyway, or one that Spark computes."""
        name = self._column(part, side)
        if name is not None and self._travels(side, name, kind, casts):
            return p.Column(side, name)
        sql = _cast(self.sides.text.of(part), casts)
        skipped = [guard for of_side, guard in guards if of_side == side]
        if skipped and not (name is not None and self._never_fails(kind, casts)):
            sql = f"IF({' OR '.join(skipped)}, NULL, {sql})"
        computed = self.added[side]
        if sql not in computed:
            added = f"skewless_where_{len(self.kinds)}"
            final = self.analyser.kind(side, sql)
            if not types.arrow_carries(final):
                raise self._untyped(part, final)
            computed[sql] = added
            self.kinds[added] = final
        return p.Column(side, computed[sql])

    def _never_fails(self, kind: Any, casts: Sequence[str]) -> bool:
        return all(types.widens(kind, self._named(cast)) for cast in casts)

    def _named(self, kind: str) -> Any:
        """A type by its name."""
        return self.analyser.kind(None, f"CAST(NULL AS {kind})")

    def _column(self, part: Part, side: str) -> str | None:
        """The column of the input that a leaf is, if it is one as a whole."""
        tokens = [t for t in self.sides.text.tokens_of(part) if not t.says("(", ")")]
        given = self.sides.inputs[side == RIGHT]
        if part.kind != "leaf" or not tokens or tokens[-1].kind not in ("word", "quoted"):
            return None
        name = unquoted(tokens[-1].text)
        of_side = len(tokens) == 3 and tokens[1].says(".")
        of_side = of_side and unquoted(tokens[0].text).lower() == side
        if len(tokens) != 1 and not of_side:
            return None
        return next((n for n in given.names if given.fold(n) == given.fold(name)), None)

    def _travels(self, side: str, name: str, kind: Any, casts: Sequence[str]) -> bool:
        """Whether a column is in the common stream in the type that is asked for."""
        if side == RIGHT or self.keys_are_common:
            for key in (pair[side == RIGHT] for pair in self.keys):
                if key.name == name and key.kind != key.compared_as:
                    return list(casts) == [key.compared_as.simpleString()]
        return not casts

    def _converted(self, part: Part, kind: Any, node: p.Node, casts: Sequence[str]) -> p.Node:
        """What pairs have given as another type: numbers in a type that has room for them."""
        for cast in casts:
            target = self._named(cast)
            if not types.widens(kind, target):
                told = f"{self.sides.told(part)} is {kind.simpleString()}"
                raise self.sides.refused(
                    f"values of one type: {told} and would be cast to {cast}, which is done for "
                    f"values of one side alone, {INSTEAD}"
                )
            node, kind = p.Convert(node, types.arrow_type(target)), target
        return node

    def _between_sides(self, part: Part, guards: _Guards) -> tuple[Any, p.Node]:
        """Type and node of an operator whose operands are of both sides."""
        kind = part.kind
        if kind in ("and", "or"):
            first = self._truth(part.operands[0], guards)
            inner = (*guards, *self._guards(part.operands[0], kind))
            second = self._truth(part.operands[1], inner)
            return types.BOOLEAN, (p.And if kind == "and" else p.Or)(first, second)
        if kind == "not":
            return types.BOOLEAN, p.Not(self._truth(part.operands[0], guards))
        if kind in _COMPARISONS:
            return types.BOOLEAN, self._comparison(kind, part, part.operands, guards)
        if kind.endswith("between"):
            value, lower, upper = part.operands
            found: p.Node = p.And(
                self._comparison(">=", part, (value, lower), guards),
                self._comparison("<=", part, (value, upper), guards),
            )
            return types.BOOLEAN, p.Not(found) if kind.startswith("not") else found
        if kind in ("in", "not in"):
            return types.BOOLEAN, self._in(part, guards)
        if kind.endswith("distinct"):
            same = self._comparison("<=>", part, part.operands, guards)
            return types.BOOLEAN, same if "not" in kind else p.Not(same)
        if kind.startswith("is "):
            return types.BOOLEAN, self._is(part, guards)
        if kind in ARITHMETIC:
            return self._arithmetic(part, guards)
        if kind in ("negative", "abs"):
            operand = self._operand(part.operands[0], guards)
            self._number(part, operand.kind)
            made = p.Negative if kind == "negative" else p.Absolute
            return operand.kind, made(
                operand.made(()), self.analyser.is_ansi, self.sides.told(part)
            )
        if kind in ("least", "greatest", "coalesce"):
            of = [self._operand(operand, guards) for operand in part.operands]
            places = ", ".join(f"{{{i}}}" for i in range(len(of)))
            result, nodes = self._common(part, f"{kind}({places})", of)
            if kind == "coalesce":
                return result, p.Coalesce(tuple(nodes))
            return result, p.Extreme(kind == "greatest", tuple(nodes))
        if kind in ("if", "case", "case of"):
            return self._case(part, guards)
        raise self.sides.mixed(part.shown)

    def _truth(self, part: Part, guards: _Guards) -> p.Node:
        operand = self._operand(part, guards)
        if operand.is_constant and types.is_null(operand.kind):
            return operand.made(("boolean",))
        if not types.is_boolean(operand.kind):
            told = f"{self.sides.told(part)} is {operand.kind.simpleString()}"
            raise self.sides.refused(f"boolean operands of AND, OR, NOT, CASE and IF: {told}")
        return operand.made(())

    def _guards(self, part: Part, kind: str) -> _Guards:
        """When what stands behind a piece is not evaluated, as far as one side can tell.

        Behind AND nothing counts where the piece is false. There Spark would not evaluate
        `10 / left.d` in `left.d <> 0 AND 10 / left.d > right.x`, and so it must not for a column.
        """
        if part.kind == kind and self.sides.owner(part) == BOTH:
            return tuple(g for operand in part.operands for g in self._guards(operand, kind))
        owner = self.sides.owner(part)
        if owner not in SIDES:
            return ()
        text = f"({self.sides.text.of(part)})"
        return ((owner, f"NOT {text}" if kind == "and" else text),)

    def _common(
        self, part: Part, template: str, operands: Sequence[_Operand]
    ) -> tuple[Any, list[p.Node]]:
        """The result's type, and the operands in the one type that Spark brings them to.

        A constant is asked about as a column of its type. Spark knows rules for literals that give
        the same result in another way: `whole < 10.5` becomes `whole < 11`.
        """
        of = {f"c{i}": operand.kind for i, operand in enumerate(operands)}
        first = operands[0].kind
        are_alike = types.compares_in_tasks(first) and all(kind == first for kind in of.values())
        if part.kind in _COMPARISONS and are_alike:
            return types.BOOLEAN, [operand.made(()) for operand in operands]
        try:
            found = self.analyser.coerced(template.format(*of), of)
        except NotAnalysedError as failure:
            told = self.sides.told(part)
            raise SkewlessError(f"where: Spark does not take {told!r}: {failure}") from None
        if found is None:
            raise self.sides.refused(f"operands of one type in {self.sides.told(part)}: cast them")
        result, casts = found
        finals = []
        for name, kind in of.items():
            final = self._named(casts[name][-1]) if casts[name] else kind
            if final == kind and len(casts[name]) == 1:
                casts[name] = ()  # of a type to itself
            finals.append(final)
        if any(kind != finals[0] for kind in finals):
            raise self._untyped(part, *finals)
        if not types.compares_in_tasks(finals[0]):
            raise self._untyped(part, finals[0])
        nodes = [operand.made(casts[f"c{i}"]) for i, operand in enumerate(operands)]
        return result, nodes

    def _untyped(self, part: Part, *kinds: Any) -> SkewlessError:
        told = " and ".join(dict.fromkeys(kind.simpleString() for kind in kinds))
        hint = "compute the part of each side by itself"
        if any(types.is_temporal(kind) for kind in kinds):
            hint = (
                "add the interval to one side, as in right.t < left.t + INTERVAL 5 SECONDS, or "
                "use `within`"
            )
        elif any(types.is_decimal(kind) for kind in kinds):
            hint = "cast decimals to double or to whole numbers, or rearrange it"
        elif any(types.is_text(kind) for kind in kinds):
            hint = "text of the collation UTF8_BINARY: compare lower(left.x) with lower(right.y)"
        return self.sides.refused(
            f"plain values between the sides: {self.sides.told(part)} is about {told}; {hint}, "
            f"{INSTEAD}"
        )

    def _comparison(
        self, op: str, part: Part, compared: tuple[Part, ...], guards: _Guards
    ) -> p.Node:
        of = [self._operand(operand, guards) for operand in compared]
        _, (a, b) = self._common(part, f"{{0}} {op} {{1}}", of)
        if op in ("=", "<>"):
            same = p.Compare("=", a, b)
            return same if op == "=" else p.Not(same)
        if op in (">", ">="):
            return p.Compare("<" if op == ">" else "<=", b, a)
        return p.Compare(op, a, b)

    def _in(self, part: Part, guards: _Guards) -> p.Node:
        of = [self._operand(operand, guards) for operand in part.operands]
        places = ", ".join(f"{{{i}}}" for i in range(1, len(of)))
        _, (value, *listed) = self._common(part, f"{{0}} IN ({places})", of)
        found: p.Node = p.Compare("=", value, listed[0])
        for other in listed[1:]:
            found = p.Or(found, p.Compare("=", value, other))
        return p.Not(found) if part.kind == "not in" else found

    def _is(self, part: Part, guards: _Guards) -> p.Node:
        asked = part.kind.removeprefix("is ")
        negated = asked.startswith("not ")
        asked = asked.removeprefix("not ")
        found: p.Node
        if asked in ("null", "unknown"):
            found = p.IsNull(self._operand(part.operands[0], guards).made(()))
        else:
            of = self._truth(part.operands[0], guards)
            found = p.Compare("<=>", of, p.Constant(pa.scalar(asked == "true")))
        return p.Not(found) if negated else found

    def _number(self, part: Part, kind: Any) -> None:
        if not types.is_number(kind) or types.is_decimal(kind):
            raise self._untyped(part, kind)

    def _arithmetic(self, part: Part, guards: _Guards) -> tuple[Any, p.Node]:
        of = [self._operand(operand, guards) for operand in part.operands]
        for operand in of:
            if not (operand.is_constant or types.is_text(operand.kind)):
                self._number(part, operand.kind)
        result, (a, b) = self._common(part, f"{{0}} {part.kind} {{1}}", of)
        self._number(part, result)
        return result, p.Arithmetic(part.kind, a, b, self.analyser.is_ansi, self.sides.told(part))

    def _case(self, part: Part, guards: _Guards) -> tuple[Any, p.Node]:
        """IF, and CASE in both of its forms."""
        operands = list(part.operands)
        value = operands.pop(0) if part.kind == "case of" else None
        if part.kind == "if" and len(operands) != 3:
            raise self.sides.refused("IF with a condition and two values")
        count = len(operands) // 2
        conditions: list[p.Node] = []
        values: list[_Operand] = []
        for asked, given in zip(operands[0 : 2 * count : 2], operands[1::2], strict=True):
            if value is not None:
                conditions.append(self._comparison("=", part, (value, asked), guards))
                values.append(self._operand(given, guards))
                continue
            conditions.append(self._truth(asked, guards))
            owner, text = self.sides.owner(asked), f"({self.sides.text.of(asked)})"
            inside = ((owner, f"{text} IS NOT TRUE"),) if owner in SIDES else ()
            values.append(self._operand(given, (*guards, *inside)))
            if owner in SIDES:
                guards = (*guards, (str(owner), text))
        if len(operands) % 2:
            values.append(self._operand(operands[-1], guards))
        whens = " ".join(f"WHEN b THEN {{{i}}}" for i in range(count))
        rest = f" ELSE {{{count}}}" if len(operands) % 2 else ""
        result, nodes = self._common(part, f"CASE {whens}{rest} END", values)
        nothing = p.Constant(pa.scalar(None, types.arrow_type(result)))
        branches = tuple(zip(conditions, nodes[:count], strict=True))
        return result, p.Case(branches, nodes[count] if rest else nothing)


def _cast(text: str, casts: Sequence[str]) -> str:
    for kind in casts:
        text = f"CAST({text} AS {kind})"
    return text
