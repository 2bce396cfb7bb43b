"""What a writer refuses, with what to do instead; none of it needs a session."""

from pathlib import Path

import pytest
from pyspark.sql import types as T

from skewless.errors import SkewlessError
from skewless.runtime.refusals import (
    refuse_foreign_progress,
    refuse_more_than_a_text,
    refuse_nested_columns,
    refuse_nested_folders,
    refuse_sparks_own,
    refuse_without_batches,
)
from skewless.state.commit import CheckpointError
from skewless.state.storage import Storage

FLAT = T.StructType().add("a", "string").add("n", "integer")


def test_triggers_without_batches() -> None:
    refuse_without_batches({"continuous": None})
    with pytest.raises(SkewlessError, match=r"trigger: continuous='1 second'.*processingTime"):
        refuse_without_batches({"continuous": "1 second"})


def test_formats_that_cannot_hold_the_columns() -> None:
    refuse_nested_columns(FLAT)
    with pytest.raises(SkewlessError, match=r"csv cannot hold the column 'list'.*flatten"):
        refuse_nested_columns(T.StructType().add("list", T.ArrayType(T.IntegerType())))
    refuse_more_than_a_text(FLAT, ["n"])
    with pytest.raises(SkewlessError, match=r"text takes a single column.*a string, n int"):
        refuse_more_than_a_text(FLAT, [])


@pytest.mark.parametrize(
    ("path", "state"), [("x", "x"), ("x", "x/y"), ("x/y", "x"), ("x/../z", "z")]
)
def test_folders_inside_each_other(tmp_path: Path, path: str, state: str) -> None:
    folders = {"stateLocation": str(tmp_path / state)}
    with pytest.raises(SkewlessError, match=r"path: .* and stateLocation .* lie inside each other"):
        refuse_nested_folders("path", str(tmp_path / path), folders)
    refuse_nested_folders("path", str(tmp_path / "elsewhere"), folders)


def test_the_output_of_sparks_own_sink(tmp_path: Path) -> None:
    refuse_sparks_own(str(tmp_path))
    (tmp_path / "_spark_metadata").mkdir()
    with pytest.raises(SkewlessError, match="output of Spark's own file sink"):
        refuse_sparks_own(str(tmp_path))


def test_a_checkpoint_of_a_query_of_sparks_own(tmp_path: Path) -> None:
    state = Storage(str(tmp_path / "skewless"))
    state.make_directory("commits")
    refuse_foreign_progress(str(tmp_path), state)
    (tmp_path / "commits").mkdir()
    for name in ("0", "1", ".1.crc"):
        (tmp_path / "commits" / name).touch()
    with pytest.raises(CheckpointError, match="Spark has finished batch 1"):
        refuse_foreign_progress(str(tmp_path), state)
