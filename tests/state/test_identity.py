"""A checkpoint keeps the name it was given, and a damaged name is refused."""

from pathlib import Path

import pytest

from skewless.state.commit import CheckpointError
from skewless.state.identity import identify, identity_of
from skewless.state.storage import Storage


def test_a_name_is_given_once_and_moves_along(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    here = Storage(str(tmp_path / "here"))
    assert identity_of(here) is None
    name = identify(here)
    assert identify(here) == identity_of(here) == name
    (tmp_path / "here").rename(tmp_path / "there")
    assert identity_of(Storage(str(tmp_path / "there"))) == name


def test_a_damaged_name_says_what_to_do(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    identify(storage)
    path = tmp_path / "identity.json"
    path.write_bytes(path.read_bytes().replace(b"checkpoint", b"checkpaint"))
    with pytest.raises(CheckpointError, match=r"identity\.json.*restore the file from a backup"):
        identity_of(storage)
