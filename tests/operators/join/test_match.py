"""sk.Overlap and sk.InnerProduct: what they take, and what they refuse at once."""

from typing import Any

import numpy as np
import pytest

import skewless as sk
from skewless.operators.join.match import columns_of, condition_of


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "two", None, float("nan")])
def test_an_overlap_is_a_whole_number_of_items(wrong: Any) -> None:
    with pytest.raises(sk.SkewlessError, match=r"at_least: got .*; takes a whole number from 1"):
        sk.Overlap("items", wrong)


@pytest.mark.parametrize("wrong", [0, -0.5, float("nan"), float("inf"), True, "0.5", None])
def test_an_inner_product_is_above_0(wrong: Any) -> None:
    with pytest.raises(sk.SkewlessError, match=r"at_least: got .*; takes a number above 0"):
        sk.InnerProduct("items", wrong)


@pytest.mark.parametrize("wrong", [None, 1, (), ("a",), ("a", "b", "c"), ("a", 1)])
@pytest.mark.parametrize("match", [sk.Overlap, sk.InnerProduct])
def test_a_column_is_a_name_or_one_per_side(match: Any, wrong: Any) -> None:
    with pytest.raises(sk.SkewlessError, match="column: got"):
        match(wrong, 1)


def test_the_condition_that_tasks_check() -> None:
    overlap = condition_of(sk.Overlap("s", np.int64(3)), ("k0",), hash_is_item=False)
    assert (overlap.at_least, overlap.indexed_for, overlap.keys) == (3, 3, ("k0",))
    product = condition_of(sk.InnerProduct(("a", "b"), 2), (), hash_is_item=True)
    assert (product.at_least, product.indexed_for, product.weighted) == (2.0, 1, True)
    assert columns_of(sk.InnerProduct(["a", "b"], 2)) == ("a", "b")  # type: ignore[arg-type]
