"""The state directory: files appear whole or not at all, and errors name the file."""

import errno
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from skewless.errors import SkewlessError
from skewless.state.storage import TEMPORARY, MissingFileError, StateError, Storage


def mock_storage(_: Path) -> Storage:
    """Arrow's filesystem in memory: no rename, as an object store."""
    return Storage("mock:///state")


def subtree_storage(root: Path) -> Storage:
    """A filesystem of another type than the local one, over real files."""
    storage = Storage("subtree")
    (root / "state").mkdir()
    storage.__dict__["_opened"] = (fs.SubTreeFileSystem(str(root), fs.LocalFileSystem()), "state")
    return storage


def local_storage(root: Path) -> Storage:
    return Storage(str(root / "state"))


def uri_storage(root: Path) -> Storage:
    return Storage((root / "state").as_uri())


KINDS = [local_storage, uri_storage, mock_storage, subtree_storage]


@pytest.fixture(params=KINDS, ids=["path", "uri", "mock", "subtree"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    make: Callable[[Path], Storage] = request.param
    storage = make(tmp_path)
    storage.make_directory("d")
    return storage


@pytest.fixture
def local(tmp_path: Path) -> Storage:
    storage = local_storage(tmp_path)
    storage.make_directory("d")
    return storage


class Broken(BaseException):
    """Not an Exception: what a dying task raises."""


def half_written(failure: BaseException) -> Callable[[pa.NativeFile], None]:
    def write(out: pa.NativeFile) -> None:
        out.write(b"half")
        raise failure

    return write


def test_what_is_written_is_read(storage: Storage) -> None:
    storage.write_bytes("d/a", b"content")
    assert storage.read_bytes("d/a") == b"content"
    assert storage.read_mapped("d/a").to_pybytes() == b"content"
    assert storage.exists("d/a")
    assert not storage.exists("d/b")


def test_a_file_is_replaced(storage: Storage) -> None:
    storage.write_bytes("d/a", b"old and long")
    storage.write_bytes("d/a", b"new")
    assert storage.read_bytes("d/a") == b"new"
    assert storage.list("d") == ["a"]


def test_files_are_listed_in_order_without_directories(storage: Storage) -> None:
    for name in ("b", "c", "a"):
        storage.write_bytes(f"d/{name}", b"")
    storage.make_directory("d/inner")
    assert storage.list("d") == ["a", "b", "c"]
    assert storage.folders("d") == {"inner"}
    assert storage.list("no such directory") == []
    assert storage.folders("no such directory") == set()


def test_deleting_twice_is_fine(storage: Storage) -> None:
    storage.write_bytes("d/a", b"")
    storage.delete("d/a")
    storage.delete("d/a")
    assert storage.list("d") == []


def test_a_missing_file_is_named(storage: Storage) -> None:
    for read in (storage.read_bytes, storage.read_mapped):
        with pytest.raises(MissingFileError) as failure:
            read("d/gone")
        assert str(failure.value).startswith(storage.path("d/gone"))
        assert isinstance(failure.value, SkewlessError)


@pytest.mark.parametrize("failure", [RuntimeError("no"), Broken(), OSError(errno.EIO, "bad disk")])
def test_a_writer_that_raises_leaves_no_file(storage: Storage, failure: BaseException) -> None:
    expected = StateError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(expected):
        storage.write("d/a", half_written(failure))
    assert storage.list("d") == []


def test_a_writer_that_raises_leaves_the_old_file(storage: Storage) -> None:
    storage.write_bytes("d/a", b"old")
    with pytest.raises(RuntimeError, match="no"):
        storage.write("d/a", half_written(RuntimeError("no")))
    assert storage.read_bytes("d/a") == b"old"
    assert storage.list("d") == ["a"]


def test_an_unfinished_write_has_a_temporary_name(local: Storage) -> None:
    seen: list[str] = []

    def write(out: pa.NativeFile) -> None:
        seen.extend(local.list("d"))
        out.write(b"x")

    local.write("d/a.json", write)
    assert [TEMPORARY in name for name in seen] == [True]
    assert not seen[0].endswith(".json")
    assert local.list("d") == ["a.json"]


def test_a_full_disk_is_named_with_what_to_do(storage: Storage) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(StateError) as failure:
        storage.write("d/big", half_written(full))
    message = str(failure.value)
    assert message.startswith(storage.path("d/big"))
    assert "the disk is full: free some space" in message
    assert storage.list("d") == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_arrow_tells_a_full_disk_by_its_number() -> None:
    with pytest.raises(OSError, match="No space left") as failure:
        fs.LocalFileSystem().open_append_stream("/dev/full").write(b"x")
    assert failure.value.errno == errno.ENOSPC


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_write_access(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o500)
    with pytest.raises(StateError, match="write access or choose another checkpointLocation"):
        local_storage(tmp_path).write_bytes("a", b"")


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(StateError) as failure:
        local_storage(tmp_path).make_directory("d")
    assert str(tmp_path / "state" / "d") in str(failure.value)


@pytest.mark.parametrize("uri", ["gopher://host/state", "file:relative"])
def test_a_uri_that_arrow_does_not_know(uri: str) -> None:
    with pytest.raises(StateError) as failure:
        Storage(uri).list("d")
    assert repr(uri) in str(failure.value)
    assert "use a local path, or a URI whose filesystem pyarrow knows" in str(failure.value)


def test_workers_get_it_pickled(local: Storage) -> None:
    local.write_bytes("d/a", b"1")
    copy = pickle.loads(pickle.dumps(local))
    assert copy == local
    assert copy.read_bytes("d/a") == b"1"


def test_errors_survive_pickling(local: Storage) -> None:
    with pytest.raises(MissingFileError) as failure:
        local.read_bytes("d/gone")
    copy = pickle.loads(pickle.dumps(failure.value))
    assert isinstance(copy, MissingFileError)
    assert str(copy) == str(failure.value)


def test_a_folder_goes_with_all_that_is_in_it(storage: Storage) -> None:
    storage.make_directory("a/b")
    for name in ("a/x", "a/b/y"):
        storage.write_bytes(name, b"z")
    storage.delete_folder("a")
    assert not storage.exists("a")
    storage.delete_folder("a")  # gone already


def test_a_folder_that_somebody_still_reads_may_stay(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Busy:
        def __init__(self, code: int) -> None:
            self.code = code

        def delete_dir(self, path: str) -> None:
            raise OSError(self.code, "cannot remove", path)

    for code in (errno.ENOTEMPTY, errno.EBUSY):
        monkeypatch.setitem(storage.__dict__, "_opened", (Busy(code), "/s"))
        storage.delete_folder("a")
    monkeypatch.setitem(storage.__dict__, "_opened", (Busy(errno.EROFS), "/s"))
    with pytest.raises(StateError, match="/s/a: cannot delete"):
        storage.delete_folder("a")


def test_several_files_are_read_and_deleted_at_once(storage: Storage) -> None:
    names = [f"f{number}" for number in range(50)]
    for name in names:
        storage.write_bytes(name, name.encode())
    assert [content.decode() for content in storage.read_all(names)] == names
    storage.delete_all([*names, "not there"])
    assert storage.list("") == []
