"""Reads the text of a condition as the tree of those operators that a task can evaluate.

What the tree does not know (functions, casts, literals) stays a piece of text, which Spark computes
as it stands. So no text is ever written anew, and Spark is asked whether it reads the same tree.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from skewless.errors import SkewlessError, bad_argument

TAKES = (
    "one boolean expression in Spark SQL over columns of both sides, such as "
    '"left.price < right.limit"'
)
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<comment>--|/\*)
    | (?P<string>[rR](?:'[^']*'|"[^"]*") | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?(?![\w]))
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><=>|>>>|<<|>>|<=|>=|<>|!=|!<|!>|==|\|\||::|->|=>|[-+*/%&|^~!=<>()\[\],.:])
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_COMPARISONS = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    "!>": "<=",
    ">": ">",
    ">=": ">=",
    "!<": ">=",
    "<=>": "<=>",
}
# Operators by how loosely they bind; those that no task evaluates are there to be told apart.
_LEVELS: tuple[tuple[str, ...], ...] = (
    tuple(_COMPARISONS),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>", ">>>"),
    ("+", "-", "||"),
    ("*", "/", "%", "DIV"),
)
ARITHMETIC = ("+", "-", "*", "/", "%")
FUNCTIONS = {
    "abs": "abs",
    "least": "least",
    "greatest": "greatest",
    "coalesce": "coalesce",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "if": "if",
    "isnull": "is null",
    "isnotnull": "is not null",
}
_LIKE = ("LIKE", "ILIKE", "RLIKE", "REGEXP")
_UNITS = re.compile(r"(YEAR|QUARTER|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND|(MILLI|MICRO)SECOND)S?", re.I)
# Words that cannot begin an operand: what is before them lacks one.
_NO_OPERAND = ("AND", "OR", "IN", "IS", "LIKE", "BETWEEN", "THEN", "WHEN", "ELSE", "END", "AS")
# The same text has another value in every batch, so stored rows could not be compared again.
_MOVING = ("current_timestamp", "now", "current_date", "curdate", "current_time", "localtimestamp")


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    begin: int
    end: int

    def says(self, *words: str) -> bool:
        """Whether it is one of these words or signs."""
        return self.kind in ("word", "sign") and self.text.upper() in words


@dataclass(frozen=True)
class Part:
    """A piece of the text: an operator and its operands, or ("leaf", "other") just text."""

    kind: str
    begin: int
    end: int
    operands: tuple["Part", ...] = ()
    shown: str = ""  # what messages call it
    is_enclosed: bool = False  # in parentheses


@dataclass(frozen=True)
class Text:
    """A condition as text, its tokens, and the tree that they make."""

    text: str
    tokens: tuple[Token, ...]
    root: Part

    def of(self, part: Part) -> str:
        return self.text[part.begin : part.end]

    def tokens_of(self, part: Part) -> list[Token]:
        return [t for t in self.tokens if part.begin <= t.begin and t.end <= part.end]


def read(where: object) -> Text:
    """The tree of a condition; an error where it is none.

    >>> read("left.a + 1 < right.b AND c").root.kind
    'and'
    """
    if not isinstance(where, str) or not where.strip():
        raise bad_argument("where", where, TAKES)
    text = _named_sides(where.strip())
    tokens = tuple(_tokens(text))
    _refuse_words(where, tokens)
    reader = _Reader(where, tokens)
    root = reader.expression()
    if reader.at < len(tokens):
        raise reader.unexpected()
    return Text(text, tokens, root)


def _named_sides(text: str) -> str:
    """The text with the names of sides quoted: LEFT and RIGHT are key words of SQL."""
    tokens = list(_tokens(text))
    for i in reversed(range(len(tokens) - 1)):
        token = tokens[i]
        behind_dot = i > 0 and tokens[i - 1].says(".")
        if token.says("LEFT", "RIGHT") and tokens[i + 1].says(".") and not behind_dot:
            text = f"{text[: token.begin]}`{token.text.lower()}`{text[token.end :]}"
    return text


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise SkewlessError(f"where: cannot read {text[at : at + 20]!r}; takes {TAKES}")
        kind = str(found.lastgroup)
        if kind == "comment":
            raise SkewlessError("where: got a comment; takes one expression without comments")
        if kind != "space":
            yield Token(kind, found[0], at, found.end())
        at = found.end()


def _refuse_words(where: str, tokens: tuple[Token, ...]) -> None:
    for i, token in enumerate(tokens):
        if token.kind != "word" or (i and tokens[i - 1].says(".")):
            continue
        called = i + 1 < len(tokens) and tokens[i + 1].says("(")
        if token.says("SELECT") or (token.says("EXISTS") and called and _has_query(tokens, i)):
            raise bad_argument("where", where, "an expression without subqueries: join the table")
        if token.says("OVER") and called:
            raise bad_argument("where", where, "an expression without window functions")
        empty = called and i + 2 < len(tokens) and tokens[i + 2].says(")")
        name = token.text.lower()
        if name in _MOVING or (name == "unix_timestamp" and empty):
            raise bad_argument(
                "where",
                where,
                f"an expression of the rows alone: {name} is another value in every batch, and "
                "rows of several batches meet; use the event time",
            )


def _has_query(tokens: tuple[Token, ...], i: int) -> bool:
    return i + 2 < len(tokens) and tokens[i + 2].says("SELECT", "WITH")


class _Reader:
    """Descends through the tokens as Spark's grammar does."""

    def __init__(self, where: str, tokens: tuple[Token, ...]) -> None:
        self._where = where
        self._tokens = tokens
        self.at = 0

    def unexpected(self) -> SkewlessError:
        if self.at >= len(self._tokens):
            return bad_argument("where", self._where, f"{TAKES} (it ends too early)")
        token = self._tokens[self.at]
        return bad_argument("where", self._where, f"{TAKES} ({token.text!r} is unexpected)")

    def _sees(self, *words: str, ahead: int = 0) -> bool:
        at = self.at + ahead
        return at < len(self._tokens) and self._tokens[at].says(*words)

    def _sees_kind(self, *kinds: str, ahead: int = 0) -> bool:
        at = self.at + ahead
        return at < len(self._tokens) and self._tokens[at].kind in kinds

    def _take(self) -> Token:
        if self.at >= len(self._tokens):
            raise self.unexpected()
        self.at += 1
        return self._tokens[self.at - 1]

    def _accept(self, *words: str) -> bool:
        if self._sees(*words):
            self.at += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise self.unexpected()

    def _part(
        self, kind: str, begin: int, operands: tuple[Part, ...] = (), shown: str = ""
    ) -> Part:
        """What has been read since a place of the text."""
        return Part(kind, begin, self._tokens[self.at - 1].end, operands, shown)

    @property
    def _begin(self) -> int:
        if self.at >= len(self._tokens):
            raise self.unexpected()
        return self._tokens[self.at].begin

    def expression(self) -> Part:
        found = self._conjunction()
        while self._accept("OR"):
            found = self._part("or", found.begin, (found, self._conjunction()), "OR")
        return found

    def _conjunction(self) -> Part:
        found = self._negation()
        while self._accept("AND"):
            found = self._part("and", found.begin, (found, self._negation()), "AND")
        return found

    def _negation(self) -> Part:
        begin = self._begin
        if self._accept("NOT", "!"):
            return self._part("not", begin, (self._negation(),), "NOT")
        return self._predicate()

    def _predicate(self) -> Part:
        """A value, or what is asked of one: BETWEEN, IN, LIKE, IS."""
        value = self._operation(0)
        begin = value.begin
        if self._accept("IS"):
            return self._is(value)
        negated = self._sees("NOT") and self._sees("BETWEEN", "IN", *_LIKE, ahead=1)
        prefix = "not " if negated else ""
        self.at += negated
        if self._accept("BETWEEN"):
            lower = self._operation(0)
            self._expect("AND")
            upper = self._operation(0)
            return self._part(f"{prefix}between", begin, (value, lower, upper), "BETWEEN")
        if self._accept("IN"):
            self._expect("(")
            return self._part(f"{prefix}in", begin, (value, *self._listed()), "IN")
        if self._sees(*_LIKE):
            shown = self._take().text.upper()
            if self._accept("ANY", "ALL", "SOME"):
                self._expect("(")
                return self._part("other", begin, (value, *self._listed()), shown)
            pattern = self._operation(0)
            if self._accept("ESCAPE"):
                self._take()
            return self._part("other", begin, (value, pattern), shown)
        return value

    def _is(self, value: Part) -> Part:
        negated = "not " if self._accept("NOT") else ""
        if self._accept("DISTINCT"):
            self._expect("FROM")
            other = self._operation(0)
            return self._part(f"is {negated}distinct", value.begin, (value, other), "IS DISTINCT")
        if not self._sees("NULL", "TRUE", "FALSE", "UNKNOWN"):
            raise self.unexpected()
        asked = self._take().text.lower()
        return self._part(f"is {negated}{asked}", value.begin, (value,), "IS")

    def _listed(self) -> tuple[Part, ...]:
        """Expressions up to the closing parenthesis."""
        found = [self.expression()]
        while self._accept(","):
            found.append(self.expression())
        self._expect(")")
        return tuple(found)

    def _operation(self, level: int) -> Part:
        if level == len(_LEVELS):
            return self._unary()
        found = self._operation(level + 1)
        while self._sees(*_LEVELS[level]):
            sign = self._take().text.upper()
            kind = _COMPARISONS.get(sign, sign if sign in ARITHMETIC else "other")
            found = self._part(kind, found.begin, (found, self._operation(level + 1)), sign)
        return found

    def _unary(self) -> Part:
        begin = self._begin
        if self._sees("-") and self._sees_kind("number", ahead=1):
            self.at += 2  # a negative number is a literal
            return self._part("leaf", begin)
        if self._accept("-"):
            return self._part("negative", begin, (self._unary(),), "-")
        if self._sees("+", "~"):
            sign = self._take().text
            return self._part("other", begin, (self._unary(),), sign)
        return self._extended(self._primary())

    def _extended(self, found: Part) -> Part:
        """What follows an operand and belongs to it: a field, an element, a cast, a collation."""
        while self._sees(".", "[", "::", ":", "COLLATE"):
            sign = self._take().text
            if sign == "[":
                self._skip("[", "]")
            elif sign == "::":
                self._take()
                if self._sees("("):
                    self._balanced("(", ")")
                elif self._sees("<"):
                    self._balanced("<", ">")
            else:
                self._take()
            if found.kind == "leaf":
                found = self._part("leaf", found.begin, shown=found.shown)
            else:
                found = self._part("other", found.begin, (found,), sign.upper())
        return found

    def _primary(self) -> Part:
        begin = self._begin
        token = self._tokens[self.at]
        if token.says("("):
            return self._parenthesised(begin)
        if token.says("CASE"):
            return self._case(begin)
        if token.says("INTERVAL") and not self._sees("(", ".", ahead=1):
            return self._interval(begin)
        if token.kind == "sign" or token.says(*_NO_OPERAND):
            raise self.unexpected()
        self.at += 1
        if token.kind == "number":
            return self._part("leaf", begin)
        if token.kind == "string" or self._sees_kind("string"):
            while self._sees_kind("string"):  # neighbours are one text, DATE '...' is a date
                self.at += 1
            return self._part("leaf", begin)
        while self._sees(".") and self._sees_kind("word", "quoted", ahead=1):
            self.at += 2
        if not self._accept("("):
            return self._part("leaf", begin)
        name = token.text
        known = FUNCTIONS.get(name.lower())
        if known is not None and self._tokens[self.at - 2] is token and not self._sees(")"):
            found = self._part(known, begin, self._listed(), name)
            return replace(found, end=self._tokens[self.at - 1].end)
        self._skip("(", ")")
        return self._part("leaf", begin, shown=name)

    def _parenthesised(self, begin: int) -> Part:
        self._expect("(")
        listed = self._listed()
        if len(listed) > 1:
            return self._part("other", begin, listed, "a list of values")
        end = self._tokens[self.at - 1].end
        return replace(listed[0], begin=begin, end=end, is_enclosed=True)

    def _case(self, begin: int) -> Part:
        """(condition, value, ..., otherwise), or with a value to compare before all of them."""
        self._expect("CASE")
        operands: list[Part] = []
        kind = "case"
        if not self._sees("WHEN"):
            kind = "case of"
            operands.append(self.expression())
        if not self._sees("WHEN"):
            raise self.unexpected()
        while self._accept("WHEN"):
            operands.append(self.expression())
            self._expect("THEN")
            operands.append(self.expression())
        if self._accept("ELSE"):
            operands.append(self.expression())
        self._expect("END")
        return self._part(kind, begin, tuple(operands), "CASE")

    def _interval(self, begin: int) -> Part:
        self._expect("INTERVAL")
        while True:
            self._accept("-", "+")
            self._take()
            if not self._is_unit():
                break  # '5 seconds' has its units inside
            self._take()
            if self._accept("TO"):
                self._take()
            signed = self._sees("-", "+")
            if not (
                self._sees_kind("number", "string", ahead=signed) and self._is_unit(1 + signed)
            ):
                break
        return self._part("leaf", begin)

    def _is_unit(self, ahead: int = 0) -> bool:
        at = self.at + ahead
        if at >= len(self._tokens) or self._tokens[at].kind != "word":
            return False
        return _UNITS.fullmatch(self._tokens[at].text) is not None

    def _balanced(self, opening: str, closing: str) -> None:
        self._expect(opening)
        self._skip(opening, closing)

    def _skip(self, opening: str, closing: str) -> None:
        """Up to the sign that closes what has been opened."""
        depth = 1
        while depth:
            token = self._take()
            depth += token.says(opening) - token.says(closing)
