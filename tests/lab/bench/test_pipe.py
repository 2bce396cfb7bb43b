"""How a measuring process follows its query."""

from typing import Any

from skewless.lab.bench.pipe import follow, has_rows

from .records import record


def test_a_batch_that_only_evicts_is_no_batch() -> None:
    assert has_rows(record(1))
    assert not has_rows(record(1, rows=0))
    assert not has_rows(record(1) | {"durationMs": {}})


class FakeQuery:
    """One more batch at every look, until `ends` of them are done."""

    def __init__(self, ends: int) -> None:
        self._done, self._ends = 0, ends
        self.stopped = False

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - Spark's name
        self._done += 1
        return self._done > self._ends

    @property
    def lastProgress(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return record(self._done - 1)

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 - Spark's name
        return [record(number) for number in range(min(self._done, self._ends))]

    def stop(self) -> None:
        self.stopped = True


def followed(ends: int, enough: int) -> list[int]:
    events: list[dict[str, Any]] = []
    query = FakeQuery(ends)
    records = follow(query, events.append, lambda done: done >= enough)
    assert records == query.recentProgress
    assert query.stopped
    return [event["done"] for event in events]


def test_a_query_runs_to_its_end() -> None:
    assert followed(ends=5, enough=9) == [1, 2, 3, 4, 5]


def test_a_query_is_stopped_when_it_has_done_enough() -> None:
    assert followed(ends=5, enough=2) == [1, 2]
