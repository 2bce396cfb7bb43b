"""Whether a function is for record batches or for rows, found out without being told."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skewless.errors import SkewlessError
from skewless.operators.map.call import _is_of_rows, _policy
from skewless.planning.auto import Auto
from skewless.planning.hash import Hash
from skewless.planning.leastwork import LeastWork
from skewless.planning.roundrobin import RoundRobin

SCHEMA = pa.schema([("id", pa.int64()), ("words", pa.list_(pa.string()))])


def annotated_batch(batch: pa.RecordBatch):  # type: ignore[no-untyped-def]
    raise AssertionError("not tried: its annotation says enough")


def annotated_row(row: dict[str, Any]) -> pa.RecordBatch:
    raise AssertionError("not tried: its annotation says enough")


def lazily(batch) -> Iterator[Any]:  # type: ignore[no-untyped-def]
    yield batch


def row_to_dict(row):  # type: ignore[no-untyped-def]
    return {"id": row["id"]}


def row_to_rows(row):  # type: ignore[no-untyped-def]
    return [{"n": n} for n in range(3)]


async def awaited(row):  # type: ignore[no-untyped-def]
    return row


@pytest.mark.parametrize(
    "fn", [annotated_batch, lazily, lambda b: b, lambda b: [b], lambda b: (b,)]
)
def test_of_batches(fn: Any) -> None:
    assert not _is_of_rows(fn, [], SCHEMA)


@pytest.mark.parametrize("fn", [annotated_row, row_to_dict, row_to_rows, awaited, lambda r: None])
def test_of_rows(fn: Any) -> None:
    assert _is_of_rows(fn, [], SCHEMA)


@pytest.mark.parametrize(
    "fn",
    [
        lambda row: [{"w": w} for w in row["words"]],
        lambda row: ({"w": w} for w in row["words"]),
        lambda batch: batch.append_column("n", [pc.max(batch["id"]).as_py() + 1]),
    ],
)
def test_where_it_cannot_be_told_it_must_be_said(fn: Any) -> None:
    with pytest.raises(SkewlessError, match="per_row=True or False"):
        _is_of_rows(fn, [], SCHEMA)


class Awaited:
    async def __call__(self, row):
        return row


def test_an_object_may_be_a_coroutine_function() -> None:
    assert _is_of_rows(Awaited(), [], SCHEMA)


def test_options_of_rows_say_what_a_function_takes() -> None:
    assert _is_of_rows(lambda anything: anything, ["retries"], SCHEMA)
    with pytest.raises(SkewlessError, match=r"^timeout: .*annotated to take a RecordBatch"):
        _is_of_rows(annotated_batch, ["timeout"], SCHEMA)


def test_policies_for_all_operators_have_a_meaning() -> None:
    assert _policy(None) == LeastWork()
    assert _policy(Auto()) == LeastWork()
    assert _policy(Auto(instances=(2, 6))) == LeastWork(6)
    assert _policy(Hash(3)) == RoundRobin(3)
    with pytest.raises(SkewlessError, match="balance"):
        _policy(LeastWork)
