"""The five stages follow the text of the paper."""

import json

import pytest

from skewless.planning.tiles.stages import START, Stages


def decisions(received: list[float], beta: int = 20) -> list[bool]:
    stages, taken = Stages(), []
    for arrived in received:
        stages = Stages.from_json(json.loads(json.dumps(stages.to_json()))).after(arrived, beta)
        taken.append(stages.rebalances)
    return taken


@pytest.mark.parametrize(
    ("name", "received", "rebalances"),
    [
        ("the first round is a rise; three that are not flip", [9, 9, 9, 9], [0, 0, 0, 1]),
        ("after a flip, two rounds that do not rise flip back", [9] * 8, [0, 0, 0, 1, 1, 0, 0, 1]),
        ("what helps is kept", [9, 9, 9, 9, 10, 11, 12, 13], [0, 0, 0, 1, 1, 1, 1, 1]),
        ("what stops helping is kept a while", [9, 9, 9, 9, 10, 9, 8, 7], [0, 0, 0, 1, 1, 1, 1, 0]),
        ("up and down stays in the middle", [9, 8, 9, 8, 9, 8], [0] * 6),
    ],
)  # fmt: skip
def test_decisions(name: str, received: list[float], rebalances: list[int]) -> None:
    assert decisions(received) == [bool(r) for r in rebalances], name


def test_after_beta_equal_decisions_the_other_is_tried() -> None:
    rising = [float(n) for n in range(1, 70)]
    taken = decisions(rising, beta=20)
    assert taken[:61] == [False] * 20 + [True] * 20 + [False] * 20 + [True]


def test_a_new_query_starts_in_the_middle_and_does_nothing() -> None:
    assert Stages.from_json({}) == Stages(START, False, 0, 0.0)
