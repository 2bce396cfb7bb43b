"""A task's report comes back as it was, and one that is not there is no error."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from skewless.load.report import HotKeyLoad, PartitionLoads, Report, read_reports, write_report
from skewless.routing.partitions import packed
from skewless.state.sealed import seal
from skewless.state.segment import Segment
from skewless.state.storage import StateError, Storage

SEGMENT = Segment(
    name="a",
    side="left",
    instance=3,
    level=0,
    first_batch=5,
    last_batch=5,
    rows=10,
    bytes=2**34,
    min_time_us=-(2**61),
    max_time_us=4,
    bulk_time_us=3,
    partitions=packed([0, 3, 300]),
    of_partitions=512,
    mixed_keys=True,
    checksum=7,
)
REPORT = Report(
    instance=3,
    rows={"left": 10, "right": 0},
    replicas={"left": 0, "right": 3},
    late={"left": 1, "right": 0},
    null_keys={"left": 2, "right": 0},
    bad_rows={"left": 0, "right": 0},
    max_time_us={"left": -(2**61), "right": None},
    matches=2**40,
    cpu_ms=1.25,
    wall_ms=2.5,
    peak_memory_bytes=2**33,
    segments=[SEGMENT, replace(SEGMENT, name="b", side="right")],
    replaced=["old"],
    partitions=PartitionLoads([1, 7], [4, 6], [0, 2**40]),
    hot_keys=[HotKeyLoad(2**64 - 1, {"left": 5}, 2**40)],
)


def test_a_report_comes_back_as_it_was(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.make_directory("reports")
    write_report(storage, "r.json", REPORT)
    assert read_reports(storage, ["r.json"]) == [REPORT]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        seal(REPORT.to_json()).replace(b'"matches":1099511627776', b'"matches":1099511627777'),
        seal({"instance": 3}),
        seal(replace(REPORT, segments=[]).to_json() | {"segments": [{"name": "../a"}]}),
        seal(json.loads(json.dumps(REPORT.to_json()).replace('"name": "a"', '"name": "../a"'))),
    ],
)
def test_a_damaged_report_is_named(tmp_path: Path, content: bytes) -> None:
    storage = Storage(str(tmp_path))
    storage.make_directory("reports")
    storage.write_bytes("reports/r.json", content)
    with pytest.raises(StateError) as failure:
        read_reports(storage, ["r.json"])
    assert str(failure.value).startswith(storage.path("reports/r.json"))
    assert "start the query again" in str(failure.value)
