"""Tells which side of a join the pieces of a condition are about, with the help of Spark."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from skewless.errors import SkewlessError, bad_argument
from skewless.operators.join.bounds import LEFT, RIGHT, SIDES
from skewless.operators.join.grammar import FUNCTIONS, Part, Text
from skewless.runtime.analysis import Analyser, NotAnalysedError, Scope
from skewless.runtime.dispatch import KeyColumn
from skewless.runtime.inputs import Input

Keys = list[tuple[KeyColumn, KeyColumn]]
INSTEAD = "or filter the result of an inner join: .transform(lambda rows: rows.where(...))"
BOTH = "both"


def scopes_of(
    inputs: tuple[Input, Input], keys: Keys
) -> tuple[tuple[Scope, Scope], tuple[str, ...]]:
    """The plain names of both sides: those that only one has, and keys that are the same."""
    left, right = inputs
    shared = {
        left.fold(a.name): b.name
        for a, b in keys
        if left.fold(a.name) == left.fold(b.name) and a.kind == b.kind
    }
    names = [{given.fold(name) for name in given.names} for given in inputs]
    both = names[0] & names[1]

    def plain(given: Input) -> tuple[str, ...]:
        folded = [(name, given.fold(name)) for name in given.names]
        return tuple(n for n, f in folded if f not in SIDES and (f not in both or f in shared))

    return (Scope(LEFT, plain(left)), Scope(RIGHT, plain(right))), tuple(shared.values())


@dataclass
class Sides:
    """A condition over two inputs, and which of them its pieces refer to."""

    where: str
    text: Text
    inputs: tuple[Input, Input]
    analyser: Analyser
    _found: dict[int, tuple[frozenset[str], bool]] = field(default_factory=dict)

    def refused(self, takes: str) -> SkewlessError:
        return bad_argument("where", self.where, takes)

    def told(self, part: Part) -> str:
        """A piece as its user wrote it."""
        text = self.text.of(part)
        for side in SIDES:
            text = text.replace(f"`{side}`.", f"{side}.")
        return text

    def _find_sides(self, part: Part) -> tuple[frozenset[str], bool]:
        """The sides that a piece needs, and whether it has a key that either of them has."""
        if id(part) not in self._found:
            found: frozenset[str] = frozenset()
            either = False
            if part.kind == "leaf":
                found, either = self._sides_of_leaf(part)
            for operand in part.operands:
                sides, has_key = self._find_sides(operand)
                found, either = found | sides, either or has_key
            self._found[id(part)] = found, either
        return self._found[id(part)]

    def _sides_of_leaf(self, part: Part) -> tuple[frozenset[str], bool]:
        """By the names in it, and then by asking Spark, who knows what is a name and what not.

        In INTERVAL 1 DAY there is no column, though there may be one that is called `day`.
        """
        text, tokens = self.text.of(part), self.text.tokens_of(part)
        if all(token.kind in ("number", "string", "sign") for token in tokens):
            return frozenset(), False
        qualified, plain = self._named(part)
        is_column = len(tokens) == 1 and bool(plain)
        if not qualified and not is_column and self.analyser.reads(None, text):
            return frozenset(), False
        likely = qualified or plain or frozenset(SIDES)
        found: frozenset[str] = frozenset()
        if len(qualified) < 2:
            found = frozenset(side for side in likely if self.analyser.reads(side, text))
            if not found and not qualified:
                rest = frozenset(SIDES) - likely
                found = frozenset(side for side in rest if self.analyser.reads(side, text))
        if found:
            return (frozenset(), True) if len(found) == 2 else (found, False)
        try:
            self.analyser.named(text)
        except NotAnalysedError as failure:
            raise self._unknown(part, failure) from None
        what = f"{part.shown}(...)" if part.shown else self.told(part)
        raise self.mixed(what)

    def _named(self, part: Part) -> tuple[frozenset[str], frozenset[str]]:
        """The sides that are named in a leaf, and those that may have what is named without one."""
        qualified: set[str] = set()
        plain: set[str] = set()
        tokens = self.text.tokens_of(part)
        folds = [{given.fold(n) for n in given.names} for given in self.inputs]
        shared = {self.inputs[1].fold(name) for name in self.analyser.shared}
        for i, token in enumerate(tokens):
            if token.kind not in ("word", "quoted") or (i and tokens[i - 1].says(".")):
                continue
            name = unquoted(token.text)
            if name.lower() in SIDES and i + 1 < len(tokens) and tokens[i + 1].says("."):
                qualified.add(name.lower())
            elif (folded := self.inputs[0].fold(name)) not in shared:
                plain |= {s for s, names in zip(SIDES, folds, strict=True) if folded in names}
        return frozenset(qualified), frozenset(plain)

    def _unknown(self, part: Part, failure: NotAnalysedError) -> SkewlessError:
        """Why Spark does not understand a leaf."""
        if failure.condition == "FIELD_NOT_FOUND":
            named = [unquoted(t.text) for t in self.text.tokens_of(part) if not t.says(".")]
            for side, given in zip(SIDES, self.inputs, strict=True):
                if named[0].lower() == side and named[1:]:
                    given.resolve("where", named[1])
        if failure.condition.startswith("UNRESOLVED_COLUMN"):
            name = unquoted(str(failure.parameters.get("objectName", "")))
            folded = [given.fold(name) in map(given.fold, given.names) for given in self.inputs]
            if all(folded):
                return SkewlessError(
                    f"where: both inputs have a column {name!r}; takes left.{name} or right.{name}"
                )
            listed = "; ".join(
                f"columns of the {given.argument} are {', '.join(given.names)}"
                for given in self.inputs
            )
            return SkewlessError(f"where: {self.told(part)!r} is no column; {listed}")
        return SkewlessError(f"where: Spark does not take {self.told(part)!r}: {failure}")

    def mixed(self, what: str) -> SkewlessError:
        known = ", ".join(sorted(FUNCTIONS))
        return self.refused(
            f"columns of one side in {what}: both sides may meet in AND, OR, NOT, comparisons, "
            f"BETWEEN, IN, IS, + - * / %, CASE, {known}; compute the part of each side by itself, "
            f"{INSTEAD}"
        )

    def owner(self, part: Part) -> str | None:
        """The one side that a piece refers to; BOTH; None: neither."""
        sides, has_key = self._find_sides(part)
        if len(sides) == 2:
            return BOTH
        return next(iter(sides)) if sides else LEFT if has_key else None

    def check(self) -> None:
        """Refuses what Spark does not take as a condition, or does not read as we do."""
        self._find_sides(self.text.root)  # a name that nobody knows is told first
        try:
            name = self.analyser.checked(self.text.text)
        except NotAnalysedError as failure:
            if failure.condition == "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE":
                kind = str(failure.parameters.get("conditionType", "")).strip('"').lower()
                raise self.refused(f"a boolean expression, and this is {kind}") from None
            if failure.condition == "INVALID_NON_DETERMINISTIC_EXPRESSIONS":
                raise self.refused(
                    "a deterministic expression: a batch that is run again has to give the same"
                ) from None
            if failure.condition.startswith("UNSUPPORTED"):
                raise self.refused(
                    "an expression of two rows, without aggregates, windows and generators"
                ) from None
            raise SkewlessError(f"where: Spark does not take it: {failure}") from None
        if self.analyser.named(self._printed(self.text.root)) != name:
            raise self.refused("a text with parentheses: without them it can be read in two ways")

    def _printed(self, part: Part) -> str:
        """The text with parentheses around all that we take for an operand."""
        if self.owner(part) != BOTH:
            return self.text.of(part)
        kind, shown = part.kind, part.shown
        if kind in ("and", "or"):
            # Spark makes a balanced tree of a chain, which says the same.
            return f" {kind.upper()} ".join(f"({self._printed(o)})" for o in _chain(part))
        of = [f"({self._printed(operand)})" for operand in part.operands]
        if kind == "not":
            return f"NOT {of[0]}"
        if kind == "negative":
            return f"- {of[0]}"
        if kind in ("between", "not between"):
            return f"{of[0]} {kind.upper()} {of[1]} AND {of[2]}"
        if kind in ("in", "not in"):
            return f"{of[0]} {kind.upper()} ({', '.join(of[1:])})"
        if kind.endswith("distinct"):
            return f"{of[0]} {kind.upper()} FROM {of[1]}"
        if kind in ("case", "case of"):
            return _printed_case(of, has_value=kind == "case of")
        if shown.lower() in FUNCTIONS:
            return f"{shown}({', '.join(of)})"
        if kind.startswith("is "):
            return f"{of[0]} {kind.upper()}"
        if len(of) != 2 or kind == "other":
            raise self.mixed(shown)
        return f"{of[0]} {shown} {of[1]}"


def _chain(part: Part) -> list[Part]:
    """The operands of an operator that is there several times in a row."""
    first, second = part.operands
    is_same = first.kind == part.kind and not first.is_enclosed
    return [*(_chain(first) if is_same else [first]), second]


def unquoted(name: str) -> str:
    """A name without backticks.

    >>> unquoted("`a``b`")
    'a`b'
    """
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _printed_case(of: Sequence[str], *, has_value: bool) -> str:
    rest = list(of)
    begin = f"CASE {rest.pop(0)}" if has_value else "CASE"
    branches = "".join(f" WHEN {rest[i]} THEN {rest[i + 1]}" for i in range(0, len(rest) - 1, 2))
    return f"{begin}{branches}{f' ELSE {rest[-1]}' if len(rest) % 2 else ''} END"
