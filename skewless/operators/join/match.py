"""Conditions for `match=` of `sk.join`: those on sets, and with those on distances all of them."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from skewless.errors import bad_argument
from skewless.kernels.conditions import SetCondition
from skewless.operators.join.asof import AsOf
from skewless.operators.join.near import Near, Nearest, is_number
from skewless.operators.join.postings import SETS


@dataclass(frozen=True)
class Overlap:
    """Two rows match if their sets have at least `at_least` distinct items in common.

    `column` names an array column, or one per side. Null items do not count.

        sk.join(baskets, offers, match=sk.Overlap("items", at_least=3), time="ts", within="1 hour")
    """

    column: str | tuple[str, str]
    at_least: int
    is_weighted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_column(self.column)
        if not is_number(self.at_least, Integral) or not 1 <= self.at_least < 2**31:
            raise bad_argument("at_least", self.at_least, "a whole number from 1 to 2^31 - 1")


@dataclass(frozen=True)
class InnerProduct:
    """Two rows match if the products of their common items' weights sum to `at_least` or more.

    `column` names a column of maps from item to weight, or of arrays of structs (item, weight), or
    one per side. Where an array has an item twice, its weights are added. Weights may be negative.

        sk.join(pages, queries, match=sk.InnerProduct("terms", at_least=0.5), time="ts",
                within="1 hour")
    """

    column: str | tuple[str, str]
    at_least: float
    is_weighted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_column(self.column)
        if not is_number(self.at_least, Real) or not 0 < self.at_least < math.inf:
            raise bad_argument("at_least", self.at_least, "a number above 0")


SetMatch = Overlap | InnerProduct
Match = SetMatch | Near | Nearest | AsOf


def columns_of(match: SetMatch) -> tuple[str, str]:
    """The set columns of the left and of the right side."""
    if isinstance(match.column, str):
        return match.column, match.column
    return match.column[0], match.column[1]


def condition_of(match: SetMatch, keys: tuple[str, ...], *, hash_is_item: bool) -> SetCondition:
    """What the tasks check; `keys` have to be equal, too."""
    least = float(match.at_least) if match.is_weighted else int(match.at_least)
    return SetCondition(SETS, least, match.is_weighted, keys, hash_is_item)


def _check_column(column: Any) -> None:
    names = [column] if isinstance(column, str) else column
    listed = isinstance(names, list | tuple) and all(isinstance(n, str) for n in names)
    if not listed or (not isinstance(column, str) and len(names) != 2):
        raise bad_argument("column", column, 'a column name, or ("left_name", "right_name")')
