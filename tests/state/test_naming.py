"""File names of a batch differ wherever the writers differ, and only there."""

from itertools import product

from skewless.state.naming import BatchNames


def test_every_writer_has_names_of_its_own() -> None:
    names = [BatchNames(b, o, a) for b, o, a in product((0, 1, 10), (0, 1), ("aa", "bb"))]
    written = [n.report(i) for n in names for i in (0, 1, 10)]
    written += [
        n.segment(i, side, part)
        for n in names
        for i, side, part in product((0, 1, 10), ("left", "right"), ("0000", "m000"))
    ]
    assert len(set(written)) == len(written)


def test_a_task_run_twice_has_the_same_names() -> None:
    assert BatchNames(1, 0, "aa").segment(2, "left", "0000") == (
        BatchNames(1, 0, "aa").segment(2, "left", "0000")
    )


def test_names_sort_by_batch() -> None:
    batches = [0, 9, 10, 99, 100, 123_456_789]
    names = [BatchNames(b, 0, "aa").report(0) for b in batches]
    assert sorted(names) == names
