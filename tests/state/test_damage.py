"""Random bit flips in the files of a real checkpoint: each is refused, and the file is named."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skewless.engine.columns import TIME
from skewless.load.report import Report, read_reports, write_report
from skewless.operators.join.bounds import Bounds
from skewless.state.commit import CheckpointError, Commit, CommitLog
from skewless.state.segment import open_segment
from skewless.state.storage import StateError, Storage
from skewless.state.watermark import Delays
from skewless.testing import LocalJoin

SEED = 20_260_101
FLIPS = 1_000
SECOND = 1_000_000
SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
BATCHES = 4


def table(rng: np.random.Generator, batch: int) -> pa.Table:
    moments = rng.integers(batch * SECOND, (batch + 2) * SECOND, 40)
    return pa.table([rng.integers(0, 8, 40), pa.array(moments)], schema=SCHEMA)


def new_join(directory: Path) -> LocalJoin:
    delays = Delays({"left": SECOND, "right": SECOND})
    bounds = Bounds(-SECOND, SECOND)
    return LocalJoin(str(directory), ["k"], ("t", "t"), bounds, delays, SCHEMA, SCHEMA)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Storage:
    """The checkpoint of a join after some batches."""
    directory = tmp_path_factory.mktemp("checkpoint")
    rng = np.random.default_rng(SEED)
    new_join(directory).run([(table(rng, b), table(rng, b)) for b in range(BATCHES)])
    return Storage(str(directory))


def damaged(storage: Storage, name: str) -> Iterator[str]:
    """The file with one bit changed, a thousand times; the last time as it was."""
    rng = np.random.default_rng(SEED)
    content = storage.read_bytes(name)
    for bit in rng.integers(0, 8 * len(content), FLIPS):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << (bit % 8)
        storage.write_bytes(name, bytes(flipped))
        yield f"seed {SEED}, bit {bit} of {storage.path(name)}"
    storage.write_bytes(name, content)


def refusal(read: Callable[[], object], kind: type[Exception]) -> str:
    """What is said; an empty text where nothing was noticed."""
    try:
        read()
    except kind as failure:
        return str(failure)
    return ""


def test_a_flipped_bit_of_a_commit_is_refused(storage: Storage) -> None:
    log = CommitLog(storage)
    last = BATCHES - 1
    name = f"commits/{last:012d}.json"
    before: Commit = log.load(last)
    for flip in damaged(storage, name):
        for read in (log.load, log.record):
            said = refusal(lambda read=read: read(last), CheckpointError)
            assert said.startswith(storage.path(name)), flip
            assert "new checkpointLocation" in said, flip
    assert log.load(last) == before


def test_a_query_does_not_start_from_a_damaged_commit(storage: Storage) -> None:
    name = f"commits/{BATCHES - 1:012d}.json"
    content = storage.read_bytes(name)
    changed = content.replace(b'"watermarkUs":', b'"watermarkUs":1')
    assert changed != content
    storage.write_bytes(name, changed)
    with pytest.raises(CheckpointError, match=rf"{name}: the commit cannot be read \(its checksum"):
        new_join(Path(storage.uri))
    storage.write_bytes(name, content)
    assert new_join(Path(storage.uri)).engine.begin(BATCHES).before.batch == BATCHES - 1


def test_a_flipped_bit_of_a_segment_is_refused(storage: Storage) -> None:
    # Under a folder of its own: nothing of it may have been compared before.
    segment = CommitLog(storage).load(BATCHES - 1).operators[0].segments[-1]
    copy = Storage(f"{storage.uri}-copy")
    name = segment.path
    copy.make_directory(name.rpartition("/")[0])
    copy.write_bytes(name, storage.read_bytes(name))
    for flip in damaged(copy, name):
        said = refusal(lambda: open_segment(copy, segment, TIME), StateError)
        assert said.startswith(f"{copy.path(name)}: the segment is corrupt"), flip
    assert len(open_segment(copy, segment, TIME).hashes) == segment.rows


def test_a_flipped_bit_of_a_report_is_refused(storage: Storage) -> None:
    segments = CommitLog(storage).load(BATCHES - 1).operators[0].segments
    none = {"left": 0, "right": 0}
    written = Report(
        instance=0,
        rows=none,
        replicas=none,
        late=none,
        null_keys=none,
        bad_rows=none,
        max_time_us={"left": 5, "right": None},
        matches=7,
        cpu_ms=1.5,
        wall_ms=2.5,
        peak_memory_bytes=2**30,
        segments=list(segments),
        replaced=[],
    )
    write_report(storage, "r.json", written)
    for flip in damaged(storage, "reports/r.json"):
        said = refusal(lambda: read_reports(storage, ["r.json"]), StateError)
        assert said.startswith(f"{storage.path('reports/r.json')}: the report"), flip
    assert read_reports(storage, ["r.json"]) == [written]


def test_a_flipped_bit_of_a_manifest_is_refused(storage: Storage) -> None:
    # Under a folder of its own: a process reads a manifest once.
    copy = Storage(f"{storage.uri}-manifests")
    for directory in ("commits", "manifests"):
        copy.make_directory(directory)
        for file in storage.list(directory):
            copy.write_bytes(f"{directory}/{file}", storage.read_bytes(f"{directory}/{file}"))
    name = f"manifests/{copy.list('manifests')[-1]}"
    for flip in damaged(copy, name):
        said = refusal(lambda: CommitLog(copy).load(BATCHES - 1), StateError)
        assert said.startswith(f"{copy.path(name)}: the manifest is corrupt"), flip
    assert CommitLog(copy).load(BATCHES - 1) == CommitLog(storage).load(BATCHES - 1)
