"""A location is one folder, for Spark and for us, whatever characters its name has."""

from pathlib import Path

import pytest
from pyarrow import fs

from skewless.errors import SkewlessError
from skewless.state.location import absolute_location, check_shared, open_location
from skewless.state.storage import StateError, Storage

# Hadoop takes all of these as they are.
ODD_NAME = "état, с пробелом %20 %2F # ? * [a] {b} back\\slash a:b"


def test_paths_and_uris_of_one_directory_agree(tmp_path: Path) -> None:
    here = str(tmp_path / "state")
    spellings = [here, here + "/", f"/{here}", f"{tmp_path}/./x/..//state"]
    spellings += [f"file:{s}" for s in spellings if not s.startswith("//")]
    spellings += [f"file://{s}" for s in spellings if s.startswith("/")]
    assert {Storage(s).path("a") for s in spellings} == {f"{here}/a"}
    assert {absolute_location(s) for s in spellings} == {here, f"file://{here}"}
    assert all(Storage(s).is_local for s in spellings)


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Storage("state").path("a") == str(tmp_path / "state" / "a")
    assert Storage("state").absolute() == Storage(str(tmp_path / "state"))
    assert Storage("a:b").path("c") == str(tmp_path / "a:b" / "c")


def test_every_character_of_a_name_stands_for_itself(tmp_path: Path) -> None:
    root = tmp_path / ODD_NAME
    for location in (str(root), f"file://{root}", f"file:{root}"):
        check_shared("checkpointLocation", location)
        storage = Storage(location).absolute()
        storage.make_directory("d")
        storage.write_bytes("d/a", location.encode())
        assert (root / "d" / "a").read_bytes() == location.encode()


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("mock:///e%20f/g h/état", "e%20f/g h/état"),
        ("s3a://bucket/e%20f/g h/?region=eu-west-1", "bucket/e%20f/g h"),
        ("gs://anonymous@bucket/a%2Fb", "bucket/a%2Fb"),
    ],
)
def test_other_filesystems_take_names_as_they_are_too(location: str, path: str) -> None:
    filesystem, opened = open_location(location)
    assert not isinstance(filesystem, fs.LocalFileSystem)
    assert opened == path
    assert absolute_location(location) == location


@pytest.mark.parametrize("location", ["s3a://bucket/cp?region=eu-west-1", "hdfs://host/a#b"])
def test_what_spark_and_pyarrow_read_differently_is_refused(location: str) -> None:
    with pytest.raises(SkewlessError, match=r"checkpointLocation: got .*takes a URI without '\?'"):
        check_shared("checkpointLocation", location)


@pytest.mark.parametrize(
    ("location", "takes"),
    [
        ("file:relative", "begins with file:///"),
        ("file://host/x", "names no host"),
        ("/a\0b", "without NUL characters"),
        ("hdfs://host/a\0b", "without NUL characters"),
    ],
)
def test_what_is_no_location_is_refused(location: str, takes: str) -> None:
    with pytest.raises(SkewlessError, match=takes) as refused:
        check_shared("path", location)
    assert str(refused.value).startswith(f"path: got {location!r}; takes ")
    with pytest.raises(StateError, match=takes):
        Storage(location).absolute().list("d")
