"""Checks the columns of a join by sets, and makes of them what Spark and the tasks need."""

from dataclasses import dataclass
from typing import Any

from skewless.engine.columns import ITEMS
from skewless.errors import SkewlessError
from skewless.kernels.conditions import SetCondition
from skewless.operators.join.layout import Layout
from skewless.operators.join.match import InnerProduct, Overlap, columns_of, condition_of
from skewless.runtime import types
from skewless.runtime.dispatch import SetKind, SetRows, SideColumns
from skewless.runtime.inputs import Input


@dataclass(frozen=True)
class SetColumns:
    """The set columns of both sides, and the type in which their items are compared."""

    match: Overlap | InnerProduct
    names: tuple[str, str]
    kinds: tuple[Any, Any]
    compared_as: Any

    @staticmethod
    def of(inputs: tuple[Input, Input], match: Overlap | InnerProduct) -> "SetColumns":
        names, kinds, items = [], [], []
        for given, name in zip(inputs, columns_of(match), strict=True):
            column = given.resolve("match", name)
            kind = given.type_of(column)
            found = types.items_of(kind, weighted=match.is_weighted)
            if found is None:
                takes = (
                    "a map from item to number, or an array of structs (item, number)"
                    if match.is_weighted
                    else "an array"
                )
                raise SkewlessError(
                    f"match: {given.argument} column {column!r} is {kind.simpleString()}; "
                    f"sk.{type(match).__name__} takes {takes}"
                )
            names.append(column)
            kinds.append(kind)
            items.append(found[0])
        common = types.common_key_type(items[0], items[1])
        if common is None:
            raise SkewlessError(
                f"match: cannot compare items of left {names[0]!r} ({items[0].simpleString()}) "
                f"with those of right {names[1]!r} ({items[1].simpleString()}); cast one of them, "
                "or use items of a plain comparable type"
            )
        return SetColumns(match, (names[0], names[1]), (kinds[0], kinds[1]), common)

    def described(self) -> dict[str, Any]:
        """For the query's fingerprint."""
        kind = "innerProduct" if self.match.is_weighted else "overlap"
        return {"kind": kind, "columns": list(self.names), "atLeast": float(self.match.at_least)}

    @property
    def compared(self) -> tuple[str, ...]:
        return (ITEMS,)

    def hash_is_key(self, keys: list[Any]) -> bool:
        """Whether equal hashes are equal keys and items."""
        return types.hashes_one_to_one([*keys, self.compared_as])

    def condition(self, layout: Layout, left: SideColumns, right: SideColumns) -> SetCondition:
        """What the tasks check."""
        return condition_of(self.match, layout.key_columns, hash_is_item=layout.hash_is_key)

    @property
    def chooser(self) -> None:
        """Nobody chooses: all rows that match are given."""
        return None

    def rows(self, layout: Layout, left: SideColumns, right: SideColumns) -> SetRows:
        """What Spark adds to the rows."""
        condition = self.condition(layout, left, right)
        kinds = [
            _set_kind(side.travels_as(name), kind)
            for side, name, kind in zip((left, right), self.names, self.kinds, strict=True)
        ]
        return SetRows(
            kinds[0],
            kinds[1],
            layout.key_columns,
            self.compared_as,
            condition.indexed_for,
            condition.hash_is_item,
        )


def _set_kind(column: str, kind: Any) -> SetKind:
    entry = types.entry_fields(kind)
    if entry is None:
        return SetKind(column, "{}", "x", None)
    item, weight = (f"x.`{name.replace('`', '``')}`" for name in entry)
    return SetKind(column, "map_entries({})" if types.is_map(kind) else "{}", item, weight)
