"""Wrong arguments of sk.join: an error at the call that names the argument and what it takes."""

import warnings
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.errors import LateRowsWarning, StateGrowsWarning
from skewless.runtime.stream import Stream


@pytest.fixture
def inputs(spark: SparkSession, tmp_path) -> tuple[DataFrame, DataFrame]:
    frames = []
    for side in ("left", "right"):
        schema = (
            f"k long, name string, ts timestamp, at date, {side}_value double, tags map<string,int>"
        )
        (tmp_path / side).mkdir()
        frames.append(spark.readStream.schema(schema).parquet(str(tmp_path / side)))
    return frames[0], frames[1]


def near(**changed: Any) -> sk.Near:
    right = None if "left" in changed else ("k", "right_value")
    return sk.Near(**{"radius": 1, "left": ("k", "left_value"), "right": right, **changed})


NEAREST = sk.Nearest(k=2, metres=500, left=("k", "left_value"), right=("k", "right_value"))
GOOD = {"on": "k", "time": "ts", "within": "1 second"}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"on": "nope"}, "on: the left input has no column 'nope'; its columns are k, name"),
        ({"on": [("k", "nope")]}, "on: the right input has no column 'nope'"),
        ({"on": []}, "on: got []; takes a column name"),
        ({"on": None}, "on: got None; takes a column name"),
        ({"on": [("k", "k", "k")]}, "on: got"),
        ({"on": ["k", "k"]}, "takes each column once"),
        ({"on": ("left_value", "right_value")}, "as a list: on=[('left_value', 'right_value')]"),
        ({"on": ("k", "k")}, "takes a pair of columns as a list: on=[('k', 'k')]"),
        ({"time": (1, "ts")}, "time: got 1; takes a name, one of k, name"),
        ({"on": [("k", "name")]}, "cannot compare left 'k' (bigint) with right 'name' (string)"),
        ({"on": "tags"}, "cannot compare left 'tags' (map<string,int>)"),
        ({"time": "k"}, "time: left column 'k' is bigint; takes a timestamp column"),
        ({"time": ("ts", "at")}, "time: right column 'at' is date"),
        ({"time": ("ts", "nope")}, "time: the right input has no column 'nope'"),
        ({"time": None}, "time: got None"),
        ({"within": ("5 seconds", "-5 seconds")}, "within: the lower bound"),
        ({"within": "soon"}, "within: got 'soon'; takes a duration"),
        ({"within": "-1 second"}, "within: got '-1 second'"),
        ({"within": ("1 second",)}, "within: got ('1 second',)"),
        ({"within": 5}, "within: got 5; takes a duration"),
        ({"watermark": "-1 second"}, "watermark: got '-1 second'"),
        ({"watermark": ("1 second", "garbage")}, "watermark: got 'garbage'"),
        ({"how": "crooked"}, "how: got 'crooked'; takes one of 'inner', 'left'"),
        ({"how": "left", "within": None}, "within: got no upper bound"),
        ({"how": "sideways"}, "how: got 'sideways'"),
        ({"match": "fuzzy"}, "match: got 'fuzzy'; takes sk.Overlap, sk.InnerProduct, sk.Near"),
        ({"match": sk.Overlap}, "match: got"),
        ({"match": sk.Overlap("nope", 1)}, "match: the left input has no column 'nope'"),
        ({"match": sk.Overlap(("k", "nope"), 1)}, "match: left column 'k' is bigint; sk.Overlap"),
        ({"match": sk.Overlap("tags", 1)}, "is map<string,int>; sk.Overlap takes an array"),
        (
            {"match": sk.InnerProduct("name", 1)},
            "match: left column 'name' is string; sk.InnerProduct takes a map from item to number",
        ),
        ({"match": sk.InnerProduct("tags", 1), "on": "nope"}, "on: the left input has no"),
        ({"match": sk.InnerProduct("tags", 1), "on": []}, "on: got []"),
        ({"match": near(left=("k", "nope"))}, "match: the left input has no column 'nope'"),
        ({"match": near(left=("k", "left_value"))}, "match: the right input has no column 'left_v"),
        ({"match": near(left=("k", "name"))}, "'name' is string; sk.Near takes columns of numbers"),
        ({"match": near(distance="NAME")}, "distance: got 'NAME'; takes a name that no column"),
        ({"match": NEAREST, "within": None}, "within: got 'no upper bound'; takes an upper bound"),
        ({"match": NEAREST, "within": ("1 second", None)}, "within: got 'no upper bound'"),
        ({"match": NEAREST, "watermark": ("1 second", None)}, "watermark: got None; takes a durat"),
        ({"match": NEAREST, "shed": sk.Shed()}, "shed: got Shed("),
        ({"shed": 0.5}, "shed: got 0.5; takes sk.Shed(max_latency="),
        ({"shed": sk.Shed}, "shed: got"),
        ({"shed": sk.Shed(value="nope")}, "value: got 'nope'; takes a column of the left or the"),
        ({"shed": sk.Shed(value=("k", "nope"))}, "value: the right input has no column 'nope'"),
        ({"shed": sk.Shed(value="name")}, "value: left column 'name' is string; takes a column of"),
        ({"balance": "Hash"}, "balance: got 'Hash'; takes a policy"),
        ({"balance": sk.Hash}, "balance: got"),
        ({"suffix": ""}, "suffix: got ''"),
        ({"suffix": None}, "suffix: got None"),
    ],
)
def test_wrong_arguments(inputs, changed, says) -> None:
    with pytest.raises(sk.SkewlessError) as refused:
        sk.join(*inputs, **{**GOOD, **changed})
    assert says in str(refused.value)
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    ("left", "right", "says"),
    [
        ("array<int>", "array<string>", "cannot compare items of left 's' (int) with those of"),
        ("array<array<int>>", "array<array<int>>", "match: cannot compare items of left 's'"),
        ("array<struct<a:int,b:int,c:int>>", "map<int,int>", "takes a map from item to number, or"),
        ("map<int,string>", "map<int,int>", "takes a map from item to number"),
        ("map<int,int>", "array<struct<i:string,w:double>>", "cannot compare items of left"),
    ],
)
def test_sets_that_cannot_be_compared(spark, tmp_path, left, right, says) -> None:
    frames = []
    for kind in (left, right):
        schema = f"ts timestamp, s {kind}"
        frames.append(spark.readStream.schema(schema).parquet(str(tmp_path)))
    weighted = "map" in left or "struct" in left
    match = sk.InnerProduct("s", 0.5) if weighted else sk.Overlap("s", 1)
    with pytest.raises(sk.SkewlessError) as refused:
        sk.join(*frames, match=match, time="ts", within="1 second")
    assert says in str(refused.value)


def test_the_columns_of_a_join_by_sets(spark, inputs, tmp_path) -> None:
    match = sk.InnerProduct("tags", at_least=0.5)
    plain = sk.join(*inputs, match=match, time="ts", within="1 second", suffix="_r")
    assert plain.columns[:6] == ["k", "name", "ts", "at", "left_value", "tags"]
    assert plain.columns[6:] == ["k_r", "name_r", "ts_r", "at_r", "right_value", "tags_r"]
    keyed = sk.join(*inputs, on="k", match=match, time="ts", within="1 second")
    assert keyed.columns[0] == "k"
    assert "tags_right" in keyed.columns
    assert keyed.node.operator.fingerprint["match"] == {
        "kind": "innerProduct",
        "columns": ["tags", "tags"],
        "atLeast": 0.5,
    }
    assert "match" not in sk.join(*inputs, **GOOD).node.operator.fingerprint


def test_the_columns_of_a_join_by_distance(inputs) -> None:
    plain = sk.join(*inputs, match=near(distance="apart"), time="ts", within="1 second")
    assert plain.columns[:6] == ["k", "name", "ts", "at", "left_value", "tags"]
    assert plain.columns[-3:] == ["right_value", "tags_right", "apart"]
    assert plain.schema["apart"].dataType.simpleString() == "double"
    assert plain.node.operator.fingerprint["match"] == {
        "kind": "distance",
        "columns": ["k, left_value", "k, right_value"],
        "radius": 1.0,
        "distance": "apart",
    }
    nearest = sk.join(*inputs, on="k", match=NEAREST, time="ts", within="1 second")
    assert nearest.columns[0] == "k"
    assert nearest.node.operator.fingerprint["match"] == {
        "kind": "nearest",
        "columns": ["k, left_value", "k, right_value"],
        "metres": 500.0,
        "k": 2,
    }


def test_nearest_needs_streams_that_have_a_watermark(inputs) -> None:
    left, right = inputs
    with pytest.warns(StateGrowsWarning):
        endless = sk.join(left, right, on="k", time="ts", within=None, watermark="1 second")
    with pytest.raises(
        sk.SkewlessError, match="watermark: the stream on the left has no watermark"
    ):
        sk.join(endless, right, match=NEAREST, time="ts", within="1 second", watermark="1 second")


def test_wrong_frames(inputs) -> None:
    with pytest.raises(sk.SkewlessError, match="left: got 'NoneType'; takes a streaming DataFrame"):
        sk.join(None, inputs[1], **GOOD)
    twice = inputs[0].select("*", F.col("k").alias("K"))
    with pytest.raises(sk.SkewlessError, match="left: column 'k' occurs more than once"):
        sk.join(twice, inputs[1], **GOOD)
    odd = inputs[1].withColumn("months", F.expr("make_ym_interval(1, 2)"))
    with pytest.raises(
        sk.SkewlessError, match=r"right: column 'months' is interval .*cast or drop"
    ):
        sk.join(inputs[0], odd, **GOOD)


def test_instances_must_be_a_whole_number() -> None:
    for wrong in (0, -1, 1.5, True, "two"):
        with pytest.raises(sk.SkewlessError, match="instances: got"):
            sk.Hash(wrong)


def test_a_value_is_found_on_the_sides_that_have_it(inputs) -> None:
    def values(value: object) -> dict[str, str | None]:
        shed = sk.Shed(value=value)  # type: ignore[arg-type]
        layout = sk.join(*inputs, **GOOD, watermark="1 second", shed=shed).node.operator.layout
        return dict(layout.values)

    assert values(None) == {}
    left, right = values(("left_value", "right_value")).values()
    assert left is not None
    assert left == right, "columns of one type share a slot"
    assert values("left_value") == {"left": left, "right": None}
    assert values("k") == {"left": "k0", "right": "k0"}, "keys travel as keys"


def test_output_columns(inputs) -> None:
    left, right = inputs
    plain = sk.join(left, right, **GOOD)
    assert plain.columns == [
        "k",
        "name",
        "ts",
        "at",
        "left_value",
        "tags",
        "name_right",
        "ts_right",
        "at_right",
        "right_value",
        "tags_right",
    ]
    pair = sk.join(
        left,
        right.withColumnRenamed("k", "id"),
        on=[("K", "id")],
        time="ts",
        within="1 second",
        suffix="2",
    )
    assert pair.columns[0] == "k"
    assert "id" not in pair.columns
    assert "name2" in pair.columns
    taken = left.withColumn("name_right", F.lit(1))
    with pytest.raises(sk.SkewlessError, match="suffix: 'name_right' is taken, too"):
        sk.join(taken, right, **GOOD)


@pytest.mark.parametrize(
    ("changed", "sides"),
    [
        ({"within": None}, "left and the right"),
        ({"within": (None, "1 second")}, "right"),
        ({"within": ("-1 second", None)}, "left"),
        ({"watermark": None}, "left and the right"),
        ({"watermark": ("1 second", None)}, "left"),
    ],
)
def test_state_that_grows_is_announced(inputs, changed, sides) -> None:
    with pytest.warns(
        StateGrowsWarning, match=f"the state of the {sides} side grows without bound"
    ):
        sk.join(*inputs, **{**GOOD, **changed})


def test_bounded_state_is_not_warned_of(inputs) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sk.join(*inputs, watermark="0 seconds", **GOOD)


def delays(stream: Stream) -> list[int | None]:
    return list(stream.node.operator.delays.by_side.values())


def test_the_inputs_own_watermarks_are_used(inputs) -> None:
    left, right = inputs[0].withWatermark("ts", "1 hour"), inputs[1].withWatermark("ts", "2 days")
    hour = 3_600_000_000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joined = sk.join(left, right, **GOOD)
        assert delays(joined) == [hour, 48 * hour]
        assert not any(field.metadata for field in joined.schema.fields), "it is the inputs' own"
        renamed = left.where("k > 1").select("k", F.col("ts").alias("moment"))
        times = {"time": ("moment", "ts")}
        assert delays(sk.join(renamed, right, **{**GOOD, **times})) == [hour, 48 * hour]
        same = {"watermark": ("60 minutes", "2 days")}
        assert delays(sk.join(left, right, **same, **GOOD)) == [hour, 48 * hour]
    with pytest.warns(StateGrowsWarning, match=r"left side grows.*it has no watermark"):
        assert delays(sk.join(left, inputs[1], **GOOD)) == [hour, None], "as in Spark"


def test_watermarks_that_contradict_each_other_are_refused(inputs) -> None:
    left, right = inputs[0].withWatermark("ts", "1 hour"), inputs[1]
    says = r"watermark: got '5 seconds', but the left input has withWatermark\('ts', '1 hour'\)"
    with pytest.raises(sk.SkewlessError, match=says):
        sk.join(left, right, watermark="5 seconds", **GOOD)
    with pytest.raises(sk.SkewlessError, match="watermark: got None, but the left input"):
        sk.join(left, right, watermark=None, **GOOD)
    two = left.withColumn("seen", F.col("ts") + F.expr("interval 1 second"))
    says = "time: the left input has its watermark on 'ts', not on 'seen'; call withWatermark"
    with pytest.raises(sk.SkewlessError, match=says):
        sk.join(two, right, on="k", time=("seen", "ts"), within="1 second")


def test_without_any_watermark_a_warning_says_what_is_dropped(inputs) -> None:
    with pytest.warns(LateRowsWarning, match=r'newest event time.*watermark="10 seconds"') as seen:
        assert delays(sk.join(*inputs, **GOOD)) == [0, 0]
    assert seen[0].filename == __file__, "it points at the call"


def test_the_suffix_is_checked_also_where_no_name_is_taken(inputs) -> None:
    left, right = inputs[0].select("k", "ts"), inputs[1].selectExpr("k", "ts AS seen", "name")
    with pytest.raises(sk.SkewlessError, match="suffix: got 7; takes a text"):
        sk.join(left, right, on="k", time=("ts", "seen"), within="1 second", suffix=7)


def test_slots_are_part_of_the_fingerprint(inputs) -> None:
    """Two types that are written alike and yet share no slot: a checkpoint must not be shared."""
    left = inputs[0].select("k", "ts", F.array(F.lit(1)).alias("sure"))
    prints = []
    for item in (F.lit(2), F.lit(None).cast("int")):
        right = inputs[1].select("k", "ts", F.array(item).alias("given"))
        prints.append(sk.join(left, right, **GOOD).node.operator.fingerprint)
    assert prints[0]["right"] == prints[1]["right"]
    assert prints[0]["slots"] == {"left": {"p0": "sure"}, "right": {"p0": "given"}}
    assert prints[1]["slots"] == {"left": {"p0": "sure"}, "right": {"p1": "given"}}


def test_columns_may_have_the_names_of_our_attributes(inputs) -> None:
    left = inputs[0].withColumn("node", F.lit(1)).withColumn("session", F.lit(2))
    assert {"node", "session"} <= set(
        sk.join(left, inputs[1], watermark="1 second", **GOOD).columns
    )


def test_a_union_of_watermarked_streams_is_refused(inputs) -> None:
    """Spark's watermark is the smallest of theirs, and we see one input."""
    fast, slow = (inputs[0].withWatermark("ts", delay) for delay in ("5 seconds", "1 hour"))
    both = fast.union(slow)
    with pytest.raises(sk.SkewlessError, match=r"left: 2 streams .* once, after the union"):
        sk.join(both, inputs[1], **GOOD)
    said = {"watermark": "1 hour", **GOOD}
    assert delays(sk.join(both, inputs[1], **said)) == [3_600_000_000] * 2
    once = inputs[0].union(inputs[0]).withWatermark("ts", "5 seconds")
    with pytest.warns(StateGrowsWarning):
        assert delays(sk.join(once, inputs[1], **GOOD)) == [5_000_000, None]


def test_a_watermark_that_a_stored_schema_remembers_is_none(spark, inputs, tmp_path) -> None:
    remembered = inputs[0].withWatermark("ts", "5 seconds").schema
    (tmp_path / "stored").mkdir()
    stored = spark.readStream.schema(remembered).parquet(str(tmp_path / "stored"))
    assert stored.schema["ts"].metadata, "Spark keeps it"
    with pytest.warns(LateRowsWarning):
        assert delays(sk.join(stored, inputs[1], **GOOD)) == [0, 0]
    assert delays(sk.join(stored, inputs[1], watermark="1 hour", **GOOD)) == [3_600_000_000] * 2
