"""Chains of stretches, against merging them one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels.groups import Groups, group_keys
from skewless.kernels.sessions import chains

STRETCHES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-20, 20), st.integers(1, 8)), min_size=1, max_size=40
)


@given(rows=STRETCHES)
def test_stretches_that_overlap_or_touch_are_one_session(rows) -> None:
    hashes = np.array([k for k, _, _ in rows], np.uint64)
    starts = np.array([s for _, s, _ in rows], np.int64)
    ends = np.array([s + n for _, s, n in rows], np.int64)
    found = chains(group_keys(hashes, starts, [], True), starts, ends)
    spans = set()
    for part in np.split(found.order, found.begins[1:]):
        assert len(set(hashes[part].tolist())) == 1
        spans.add((int(hashes[part[0]]), int(starts[part].min()), int(ends[part].max())))
    expected: list[list[int]] = []
    for key, start, end in sorted(
        zip(hashes.tolist(), starts.tolist(), ends.tolist(), strict=True)
    ):
        if expected and expected[-1][0] == key and start <= expected[-1][2]:
            expected[-1][2] = max(expected[-1][2], end)
        else:
            expected.append([key, start, end])
    assert spans == {tuple(e) for e in expected}
    assert len(found) == len(expected)


def test_a_short_stretch_inside_a_long_one_does_not_end_it() -> None:
    starts, ends = np.array([0, 1, 5]), np.array([10, 2, 6])
    assert chains(Groups(np.arange(3), np.array([0])), starts, ends).begins.tolist() == [0]
