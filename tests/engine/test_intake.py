"""Rows as a task takes them in: in pieces, without control rows, with their instance."""

import pyarrow as pa

from skewless.engine.columns import CONTROL_CODE, INSTANCE, LEFT_CODE, SIDE
from skewless.engine.intake import gather, named_instance, without_control


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"v": pa.array(values, pa.int64())})


def pieces(run_bytes: int, *batches: pa.RecordBatch) -> list[tuple[list[int], bool]]:
    return [(rows["v"].to_pylist(), last) for rows, last in gather(iter(batches), run_bytes)]


def test_small_batches_are_gathered_and_the_last_piece_is_known() -> None:
    batches = (batch(1), batch(), batch(2, 3), batch(4))
    assert pieces(10**6, *batches) == [([1, 2, 3, 4], True)]
    assert pieces(1, *batches) == [([1], False), ([2, 3], False), ([4], True)]
    assert pieces(1) == pieces(1, batch()) == []


def with_side(codes: list[int | None], instance: int | None = None) -> pa.RecordBatch:
    columns = {SIDE: pa.array(codes, pa.int8()), "v": list(range(len(codes)))}
    if instance is not None:
        columns[INSTANCE] = pa.array([instance] * len(codes), pa.int32())
    return pa.record_batch(columns)


def test_the_control_row_names_the_instance_and_goes() -> None:
    rows, named = without_control(with_side([None, CONTROL_CODE, LEFT_CODE], instance=3))
    assert (rows["v"].to_pylist(), named) == ([0, 2], 3)
    whole = with_side([LEFT_CODE])
    assert without_control(whole) == (whole, None)


def test_all_rows_are_read_to_find_their_instance() -> None:
    batches = iter([with_side([]), with_side([LEFT_CODE], 5), with_side([LEFT_CODE], 5)])
    assert named_instance(batches) == 5
    assert next(batches, None) is None, "Spark gives a worker up that leaves input behind"
    assert named_instance(iter([batch(1)])) is None
