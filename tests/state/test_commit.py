"""Commits: round trip, and refusals that say which file, what is wrong and what to do."""

import json
from pathlib import Path
from typing import Any

import pytest

from skewless.state.commit import (
    CheckpointError,
    Commit,
    CommitLog,
    OperatorState,
    check_fingerprint,
)
from skewless.state.sealed import seal
from skewless.state.storage import Storage

from .examples import commit, operator_state, segment


@pytest.fixture
def log(tmp_path: Path) -> CommitLog:
    storage = Storage(str(tmp_path))
    storage.make_directory("commits")
    return CommitLog(storage)


def overwrite(log: CommitLog, batch: int, content: bytes) -> str:
    name = f"commits/{batch:012d}.json"
    log.storage.write_bytes(name, content)
    return log.storage.path(name)


def test_a_commit_comes_back_as_it_was(log: CommitLog) -> None:
    state = operator_state(
        segment("a", mixed_keys=True),
        segment("b", side="right"),
        max_time_us={"left": -5, "right": 2**60},
        watermark_us=-7,
        planner={"policy": "Auto"},
    )
    published = commit(3, operators=(state, operator_state()), progress={"rows": {"left": 1}})
    log.publish(published)
    loaded = log.load(3)
    assert loaded == published
    assert loaded.segment_names() == {"a", "b"}
    assert isinstance(loaded.operators[0], OperatorState)


def test_a_replayed_batch_replaces_its_commit(log: CommitLog) -> None:
    log.publish(commit(0, segment("old")))
    log.publish(commit(0, segment("new")))
    assert log.load(0).segment_names() == {"new"}
    assert log.batches() == [0]


def test_batches_are_in_order_and_unfinished_writes_do_not_count(log: CommitLog) -> None:
    for batch in (10, 2, 1_000_000, 0):
        log.publish(commit(batch))
    log.storage.write_bytes("commits/000000000003.json.tmp-0123", b"half")
    for stray in ("notes.json", "7.json", ".nfs0000000000000007", "._000000000008.json"):
        log.storage.write_bytes(f"commits/{stray}", b"a stranger's file")
    log.storage.make_directory("commits/000000000009.json")
    assert log.batches() == [0, 2, 10, 1_000_000]
    log.delete(2)
    log.delete(2)
    assert log.batches() == [0, 10, 1_000_000]


def test_no_commits_where_there_is_no_directory(tmp_path: Path) -> None:
    assert CommitLog(Storage(str(tmp_path / "new"))).batches() == []


def test_a_missing_commit_is_named(log: CommitLog) -> None:
    log.publish(commit(0))
    with pytest.raises(CheckpointError) as refusal:
        log.load(1)
    assert str(refusal.value).startswith(log.storage.path("commits/000000000001.json"))
    assert "the commit of batch 1 is missing" in str(refusal.value)
    assert log.record(1) is None


@pytest.mark.parametrize("version", [0, 2, "3", None])
def test_another_format_is_refused(log: CommitLog, version: Any) -> None:
    """Whether it has a checksum, as it may in times to come, or not, as before."""
    record = {**commit(0).to_json(), "format": version}
    for content in (json.dumps(record).encode(), seal(record)):
        path = overwrite(log, 0, content)
        for read in (log.load, log.record):
            with pytest.raises(CheckpointError) as refusal:
                read(0)
            assert str(refusal.value).startswith(path)
            said = f"has format {version!r}, this version of Skewless reads format 3"
            assert said in str(refusal.value)


def sealed_with(**fields: Any) -> bytes:
    return seal({**commit(0).to_json(), **fields})


def without(key: str) -> bytes:
    record = commit(0).to_json()
    del record[key]
    return seal(record)


def naming(name: str) -> bytes:
    record = commit(0, segment("taken")).to_json()
    return seal(json.loads(json.dumps(record).replace('"taken"', json.dumps(name))))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"7",
        json.dumps(commit(0).to_json()).encode(),  # the format is right, the checksum is missing
        seal(commit(0).to_json())[:-1],
        seal(commit(0).to_json()) + b"\n",
        seal(commit(0).to_json()).replace(b'"watermarkUs":null', b'"watermarkUs":7'),
        seal(commit(0).to_json()).replace(b'"format":3', b'"format":2'),
        seal(commit(1).to_json()),  # another commit's file under this one's name
        without("operators"),
        without("fingerprint"),
        sealed_with(operators=[5]),
        sealed_with(operators=[{"route": None}]),
        seal(json.loads(json.dumps(commit(0, segment()).to_json()).replace('"rows"', '"lines"'))),
        naming("../../elsewhere/b000000000000-o0-a-i00000-left-0000.arrow"),
        naming("/etc/passwd"),
        naming("a\\b"),
        naming(".."),
        naming("a\0b"),
        naming(""),
    ],
)
def test_an_unreadable_commit_is_named(log: CommitLog, content: bytes) -> None:
    path = overwrite(log, 0, content)
    with pytest.raises(CheckpointError) as refusal:
        log.load(0)
    assert str(refusal.value).startswith(f"{path}: the commit cannot be read")
    assert "restore the file from a backup" in str(refusal.value)


FINGERPRINT: dict[str, Any] = {
    "operators": [
        {
            "operator": "join",
            "on": [["cell", "cell"]],
            "withinUs": [-10, 10],
            "left": {"cell": "bigint", "fare": "double"},
        }
    ]
}


def changed(**fields: Any) -> dict[str, Any]:
    return {"operators": [{**FINGERPRINT["operators"][0], **fields}]}


def stored(fingerprint: dict[str, Any]) -> Commit:
    return Commit.from_json(json.loads(json.dumps(commit(0, fingerprint=fingerprint).to_json())))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (changed(withinUs=[-10, 20]), "operators[0].withinUs[1] was 10 and is now 20"),
        (changed(withinUs=[None, 10]), "operators[0].withinUs[0] was -10 and is now null"),
        (changed(on=[["zone", "cell"]]), 'operators[0].on[0][0] was "cell" and is now "zone"'),
        (
            changed(left={"cell": "bigint"}),
            'operators[0].left.fare was "double" and is now null',
        ),
        (
            changed(left={"cell": "bigint", "fare": "double", "tip": "float"}),
            'operators[0].left.tip was null and is now "float"',
        ),
        (
            changed(on=[["cell", "cell"], ["a", "b"]]),
            'operators[0].on was [["cell", "cell"]] and is now [["cell", "cell"], ["a", "b"]]',
        ),
    ],
)
def test_another_query_is_refused_with_what_differs(now: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckpointError) as refusal:
        check_fingerprint(stored(FINGERPRINT), now, "/checkpoint")
    message = str(refusal.value)
    assert message.startswith("checkpointLocation: /checkpoint belongs to another query: ")
    assert said in message
    assert message.count(" and is now ") == 1


def test_the_same_query_is_accepted_whether_it_holds_tuples_or_lists() -> None:
    check_fingerprint(stored(FINGERPRINT), FINGERPRINT, "/checkpoint")
    check_fingerprint(stored(FINGERPRINT), changed(withinUs=(-10, 10)), "/checkpoint")
