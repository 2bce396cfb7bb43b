"""What is done to the rows of a batch together is read from the text of Spark's plan."""

import pytest

from skewless.runtime import perbatch

PLAN = """\
Project [k#1]
+- Join Inner, (k#1 = k#2)
   :- {above}
   :  +- SubqueryAlias batch_1
   :     +- LocalRelation [k#1]
   +- Aggregate [k#2], [k#2]
      +- Relation [k#2]"""


@pytest.mark.parametrize(
    ("above", "what"),
    [
        ("Aggregate [k#1], [count(1)]", "aggregates"),
        ("Sort [k#1 ASC NULLS FIRST], true", "sorts"),
        ("Sort [k#1 ASC NULLS FIRST], false", None),
        ("GlobalLimit 5", "limits rows"),
        ("Deduplicate [k#1]", "removes duplicates"),
        ("Window [row_number()]", "uses window functions"),
        ("FlatMapGroupsInPandas [k#1]", "groups"),
        ("Filter (k#1 > 1)", None),
    ],
)
def test_only_nodes_over_the_batch_count(
    above: str, what: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(monkeypatch, PLAN.format(above=above).splitlines()) == what


def test_a_plan_without_the_batch_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, ["Aggregate [k#2]", "+- Relation [k#2]"]) is None
    assert told(monkeypatch, []) is None, "a plan that Spark does not show"


def told(monkeypatch: pytest.MonkeyPatch, plan: list[str]) -> str | None:
    monkeypatch.setattr(perbatch, "analysed", lambda frame: plan)
    return perbatch.across_rows(None, "batch_1")  # type: ignore[arg-type]
