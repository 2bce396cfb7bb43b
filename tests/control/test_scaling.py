"""Instances come and go with the load, and settle."""

from hypothesis import given
from hypothesis import strategies as st

from skewless.control.scaling import scaled
from skewless.planning.scaling import wanted


@given(
    st.tuples(st.integers(1, 20), st.integers(0, 20)).map(lambda t: (t[0], t[0] + t[1])),
    st.lists(st.lists(st.floats(0, 5_000), min_size=1, max_size=1), max_size=30),
)
def test_the_number_stays_within_the_range(
    bounds: tuple[int, int], loads: list[list[float]]
) -> None:
    count, streak = wanted(bounds, cores=4), 0
    for (load,) in loads:
        scale = scaled(bounds, 1_000.0, [load] * count, streak)
        count, streak = scale.instances, scale.streak
        assert bounds[0] <= count <= bounds[1]


def test_a_steady_load_settles() -> None:
    """The same work shared by however many there are: no going to and fro."""
    work, count, streak = 6_000.0, 2, 0
    counts = []
    for _ in range(40):
        scale = scaled((1, 32), 1_000.0, [work / count] * count, streak)
        count, streak = scale.instances, scale.streak
        counts.append(count)
    assert len(set(counts[5:])) == 1
    assert work / count <= 1_000.0


def test_one_idle_instance_is_no_reason_to_grow() -> None:
    scale = scaled((1, 8), 100.0, [500.0, 10.0], streak=5)
    assert scale.instances == 2, "it is a matter of balance"
