"""Wrong arguments of sk.subscribe are refused at the call, by name; the schema is known before."""

from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

import skewless as sk

BOX = "x_min double, y_min double, x_max double, y_max double"
ON: dict[str, Any] = {"x": "lon", "y": "lat", "bounds": (0, 0, 10, 10)}


@pytest.fixture(scope="module")
def frames(spark_session: SparkSession) -> dict[str, DataFrame]:
    def stream(ddl: str) -> DataFrame:
        source = spark_session.readStream.format("rate").load()
        columns = [
            f"CAST(NULL AS {kind}) AS {name}" for name, kind in map(str.split, ddl.split(", "))
        ]
        return source.selectExpr(*columns)

    return {
        "points": stream("lon double, lat double, at timestamp, id long"),
        "texts": stream("lon string, lat double"),
        "areas": spark_session.createDataFrame([], f"id long, {BOX}, note string"),
        "circles": spark_session.createDataFrame([], f"id long, x int, y int, radius float, {BOX}"),
        "nothing": spark_session.createDataFrame([], "id long, x double"),
        "nameless": spark_session.createDataFrame([], BOX),
        "odd": spark_session.createDataFrame([], "id long, polygon long"),
        "changes": stream(f"id long, op string, {BOX}, asked_at timestamp"),
        "nested": stream(f"id array<int>, {BOX}"),
        "fractions": stream(f"id double, {BOX}"),
        "numbered": stream(f"id long, op int, {BOX}"),
    }


@pytest.mark.parametrize(
    ("points", "queries", "options", "told"),
    [
        ("areas", "areas", {}, "points: got 'a static DataFrame'"),
        ("points", None, {}, "queries: got 'NoneType'"),
        ("points", "areas", {"x": "longitude"}, "x: the points input has no column 'longitude'"),
        ("texts", "areas", {}, "x: points column 'lon' is string; takes a column of numbers"),
        ("points", "areas", {"bounds": (0, 0, 10)}, "bounds: .*four numbers"),
        ("points", "areas", {"bounds": (0, 0, "a", 1)}, "bounds: .*four numbers"),
        ("points", "areas", {"bounds": (0, 0, 0, 1)}, "bounds: .*x_min < x_max"),
        ("points", "areas", {"bounds": (0, 0, float("nan"), 1)}, "bounds: .*finite"),
        ("points", "areas", {"bounds": ("0", "0", "1", "1")}, "bounds: .*four numbers"),
        ("points", "areas", {"bounds": (False, False, True, True)}, "bounds: .*four numbers"),
        ("points", "areas", {"y": "lon"}, "y: got 'lon'; takes another column than x"),
        ("points", "areas", {"balance": sk.Hash(2)}, "balance: .*sk.Swarm"),
        ("points", "areas", {"suffix": ""}, "suffix"),
        ("points", "areas", {"shape": "square"}, "shape: got 'square'; takes one of 'rectangle'"),
        ("points", "areas", {"shape": ["circle"]}, "shape: .*takes one of 'rectangle'"),
        ("points", "areas", {"shape": "circle"}, "queries: the queries input has no column 'x'"),
        ("points", "nothing", {}, "queries: has the columns id, x; takes a rectangle"),
        ("points", "nameless", {}, "queries: has no column 'id'"),
        ("points", "odd", {}, "queries: column 'polygon' is bigint; takes text"),
        ("points", "areas", {"window": "1 minute"}, "window: .*a table asks for no past points"),
        ("points", "areas", {"time": ("at", "nothing")}, "time: .*event-time column of the points"),
        ("points", "changes", {"window": "1 minute"}, "time: .*a window needs them"),
        ("points", "changes", {"window": "-1 minute", "time": "at"}, "window: .*above 0"),
        ("points", "changes", {"window": "1 minute", "time": "at"}, "no column 'at'"),
        ("points", "changes", {"time": ("lon", "asked_at")}, "time: points column 'lon' is double"),
        ("points", "changes", {"tumbling": True}, "tumbling: .*unless window"),
        ("points", "changes", {"watermark": "1 second"}, "watermark: .*unless window is given"),
        ("points", "numbered", {}, "queries: column 'op' is int; takes text"),
        ("points", "nested", {}, "queries: column 'id' is array<int>; takes text"),
        ("points", "fractions", {}, "queries: column 'id' is double; takes text"),
        ("points", "areas", {"bounds": (-1e308, 0, 1e308, 1)}, "bounds: "),
        ("points", "areas", {"bounds": (0, 0, 1e-300, 1)}, "bounds: "),
    ],
)
def test_wrong_arguments(frames, points, queries, options, told) -> None:
    with pytest.raises(sk.SkewlessError, match=told):
        sk.subscribe(frames[points], frames.get(queries), **{**ON, **options})


def test_the_result_has_the_points_columns_then_the_id_then_the_rest(frames) -> None:
    seen = sk.subscribe(frames["points"], frames["areas"], **ON)
    assert seen.columns == ["lon", "lat", "at", "id", "id_right", "note"]
    assert repr(seen).endswith("of subscribe to rectangles")
    changing = sk.subscribe(frames["points"], frames["changes"], **ON, suffix="_q")
    assert changing.columns == ["lon", "lat", "at", "id", "id_q", "asked_at"]


def test_bounds_may_be_an_array(frames) -> None:
    options = {**ON, "bounds": np.array([0, 0, 10, 10])}
    assert sk.subscribe(frames["points"], frames["areas"], **options).columns[0] == "lon"


def test_a_shape_is_chosen_where_several_are_there(frames) -> None:
    """Columns that do not say what is subscribed to are part of the result."""
    boxes = sk.subscribe(frames["points"], frames["circles"], **ON)
    assert boxes.columns[4:] == ["id_right", "x", "y", "radius"]
    circles = sk.subscribe(frames["points"], frames["circles"], **ON, shape="circle")
    assert circles.columns[4:] == ["id_right", "x_min", "y_min", "x_max", "y_max"]


def test_points_that_are_kept_for_ever_are_warned_of(frames) -> None:
    options = {**ON, "time": ("at", "asked_at"), "window": "1 minute", "watermark": None}
    with pytest.warns(sk.StateGrowsWarning, match="all points are kept"):
        sk.subscribe(frames["points"], frames["changes"], **options)


def test_a_window_without_a_watermark_says_which_queries_are_late(frames) -> None:
    with pytest.warns(sk.LateRowsWarning, match="query of past points"):
        sk.subscribe(
            frames["points"], frames["changes"], **ON, time=("at", "asked_at"), window="1 minute"
        )
