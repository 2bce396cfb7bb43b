"""How the condition of a join is read, split and typed, and what is refused."""

import subprocess
import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import skewless as sk
from skewless.kernels import predicate as p
from skewless.operators.join.arguments import keys_of
from skewless.operators.join.grammar import Part, Text, read
from skewless.operators.join.where import Where, where_of
from skewless.runtime.analysis import casts_of
from skewless.runtime.inputs import Input

LEFT = (
    "k long, q int, a int, s struct<f:int,`odd name`:string>, x string, d date, t timestamp, "
    "m decimal(10,2), y double, flag boolean, `left` struct<x:int>, items array<int>"
)
RIGHT = (
    "K long, q long, b double, n long, x string, e date, u timestamp, z string, m2 decimal(8,4), "
    "i int, sure boolean, other array<int>, c string collate utf8_lcase"
)


def shown(text: Text, part: Part) -> Any:
    """The tree with the text of its leaves."""
    if not part.operands:
        return text.of(part)
    return (part.kind, *(shown(text, operand) for operand in part.operands))


@pytest.mark.parametrize(
    ("where", "tree"),
    [
        ("a < b", ("<", "a", "b")),
        ("a or b and not c", ("or", "a", ("and", "b", ("not", "c")))),
        ("not a = b and c", ("and", ("not", ("=", "a", "b")), "c")),
        ("a == b != c", ("<>", ("=", "a", "b"), "c")),
        ("a + b * -c - 1", ("-", ("+", "a", ("*", "b", ("negative", "c"))), "1")),
        ("a - -1", ("-", "a", "-1")),
        ("a = b is null", ("is null", ("=", "a", "b"))),
        ("a is not distinct from b", ("is not distinct", "a", "b")),
        ("a between 1 and b + 1 and c", ("and", ("between", "a", "1", ("+", "b", "1")), "c")),
        ("a not in (b, 'it''s', \"x\")", ("not in", "a", "b", "'it''s'", '"x"')),
        ("a || b like 'x%' escape '!'", ("other", ("other", "a", "b"), "'x%'")),
        ("a & b | c = d", ("=", ("other", ("other", "a", "b"), "c"), "d")),
        ("nvl(a, f(b, (c)))", ("coalesce", "a", "f(b, (c))")),
        ("(a + b).f[1] > 0", (">", ("other", ("other", ("+", "a", "b"))), "0")),
        ("m['and'].f::decimal(3,1) > 0", (">", "m['and'].f::decimal(3,1)", "0")),
        ("a < interval 1 day 2 hours and b", ("and", ("<", "a", "interval 1 day 2 hours"), "b")),
        ("t + interval '1' day to hour < u", ("<", ("+", "t", "interval '1' day to hour"), "u")),
        ("d < date '2024-01-01'", ("<", "d", "date '2024-01-01'")),
        ("case when a then b else c end", ("case", "a", "b", "c")),
        ("case a when 1 then b end = 2", ("=", ("case of", "a", "1", "b"), "2")),
        ("exists(xs, v -> v = 1) and a", ("and", "exists(xs, v -> v = 1)", "a")),
        ("LEFT.a < Right . b", ("<", "`left`.a", "`right` . b")),
        ("left(left.a, 2) = `right`.b", ("=", "left(`left`.a, 2)", "`right`.b")),
        ("1e3 < 1.5BD", ("<", "1e3", "1.5BD")),
    ],
)
def test_texts_are_read_as_spark_reads_them(where, tree) -> None:
    text = read(where)
    assert shown(text, text.root) == tree


@pytest.mark.parametrize(
    ("where", "says"),
    [
        (5, "where: got 5; takes one boolean expression in Spark SQL"),
        (" ", "where: got ' '"),
        ("a <", "(it ends too early)"),
        ("a < b AS c", "('AS' is unexpected)"),
        ("a b", "('b' is unexpected)"),
        ("f(a", "(it ends too early)"),
        ("a < b; drop table x", "cannot read '; drop table x'"),
        ("a -- b", "without comments"),
        ("a < (SELECT 1)", "without subqueries"),
        ("exists (select 1)", "without subqueries"),
        ("rank() over (order by a) < b", "without window functions"),
        ("a < now()", "now is another value in every batch"),
        ("a < unix_timestamp()", "unix_timestamp is another value in every batch"),
    ],
)
def test_texts_that_are_no_condition(where, says) -> None:
    with pytest.raises(sk.SkewlessError) as refused:
        read(where)
    assert says in str(refused.value)


def test_casts_are_found_in_a_plan() -> None:
    line = "+- Project [(cast(c1#7 as date) <=> c10#12) AS skewless_probe#9]"
    assert casts_of("c1", line) == ("date",)
    assert casts_of("c10", line) == ()
    assert casts_of("c2", line) is None


@pytest.fixture(scope="module")
def schemas(spark_session: SparkSession) -> tuple[T.StructType, T.StructType]:
    def of(text: str) -> T.StructType:
        return spark_session.createDataFrame([], text).schema

    return of(LEFT), of(RIGHT)


def split(spark: SparkSession, schemas: Any, where: str) -> Where:
    inputs = tuple(
        Input(side, s, False) for side, s in zip(("left", "right"), schemas, strict=True)
    )
    found = where_of(spark, inputs, keys_of(inputs, ["k", "q"]), where)
    assert found is not None
    return found


L, R = (lambda name: p.Column("left", name)), (lambda name: p.Column("right", name))


def test_what_one_side_needs_alone_is_left_to_spark(spark, schemas) -> None:
    where = split(
        spark, schemas, "upper(left.x) = right.z AND left.s.f + 1 < right.n AND (y > 1 OR flag)"
    )
    assert where.added["left"].columns == (
        ("skewless_where_0", "upper(`left`.x)"),
        ("skewless_where_1", "CAST(`left`.s.f + 1 AS bigint)"),
        ("skewless_where_2", "(y > 1 OR flag)"),
    )
    assert where.added["right"].columns == ()
    assert where.predicate.root == p.And(
        p.And(
            p.Compare("=", L("skewless_where_0"), R("z")),
            p.Compare("<", L("skewless_where_1"), R("n")),
        ),
        L("skewless_where_2"),
    )
    assert [kind.simpleString() for _, kind in where.extra("left")] == [
        "string",
        "bigint",
        "boolean",
    ]


def test_columns_that_travel_anyway_are_used(spark, schemas) -> None:
    """Keys in the type in which they are compared, the left's own value where that differs."""
    plain = split(spark, schemas, "left.x < right.x AND left.t <= right.u AND k > 3")
    assert plain.predicate.columns("right") == ("u", "x")
    assert {"t", "x"} <= set(plain.predicate.columns("left"))
    assert [sql for _, sql in plain.added["left"].columns] == ["k > 3"]
    keys = split(spark, schemas, "left.q + right.n > right.q")
    assert keys.added["right"].columns == ()
    assert keys.predicate.columns("right") == ("n", "q")
    odd = split(spark, schemas, "left.s.`odd name` = right.z AND left.left.x < right.n")
    assert [sql for _, sql in odd.added["left"].columns] == [
        "`left`.s.`odd name`",
        "CAST(`left`.left.x AS bigint)",
    ]


def test_types_are_those_of_spark(spark, schemas) -> None:
    for where, casts in {
        "left.a < right.b": {"CAST(`left`.a AS double)"},
        "left.m = right.n": {
            "CAST(`left`.m AS decimal(22,2))",
            "CAST(CAST(`right`.n AS decimal(20,0)) AS decimal(22,2))",
        },
        "left.d < right.z": {"CAST(`right`.z AS date)"},
        "left.d = right.u": {"CAST(`left`.d AS timestamp)"},
        "left.a IN (right.n, 3)": {"CAST(`left`.a AS bigint)"},
    }.items():
        found = split(spark, schemas, where)
        assert {sql for added in found.added.values() for _, sql in added.columns} == casts
    sums = split(spark, schemas, "left.a + right.n < 10.5").predicate.root
    assert isinstance(sums, p.Compare)
    assert isinstance(sums.first, p.Convert)
    assert str(sums.second.value) == "10.5"


def test_what_spark_would_not_evaluate_is_not_computed(spark, schemas) -> None:
    found = split(spark, schemas, "left.a <> 0 AND sure AND 10 / left.a > right.b")
    assert (
        "IF(NOT (`left`.a <> 0), NULL, 10 / `left`.a)" in dict(found.added["left"].columns).values()
    )
    found = split(spark, schemas, "IF(left.a = 0, right.sure, 10 / left.a > right.b)")
    assert "IF((`left`.a = 0), NULL, 10 / `left`.a)" in dict(found.added["left"].columns).values()


def test_no_job_runs_at_the_call(spark, schemas) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = tracker.getJobIdsForGroup(None)
    split(spark, schemas, "left.a + right.n IN (1, 2 + 1, NULL) AND left.d < right.z")
    split(
        spark, schemas, "least(left.t, right.u) < TIMESTAMP '2024-01-01' OR nvl(right.sure, flag)"
    )
    assert tracker.getJobIdsForGroup(None) == before


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("left.nope < right.n", "where: the left input has no column 'nope'; its columns are k, q"),
        ("nope < right.n", "'nope' is no column; columns of the left are k, q, a"),
        ("x = 'a'", "both inputs have a column 'x'; takes left.x or right.x"),
        ("q = 1", "both inputs have a column 'q'; takes left.q or right.q"),
        ("left.a + right.n", "takes a boolean expression, and this is bigint"),
        ("concat(left.x, right.z) = 'ab'", "takes columns of one side in concat(...): both sides"),
        ("left.x LIKE right.z", "takes columns of one side in LIKE"),
        ("left.x || right.z = 'ab'", "takes columns of one side in ||"),
        ("left.items[right.n] = 1", "takes columns of one side in left.items[right.n]"),
        ("CAST(left.a + right.n AS int) = 1", "takes columns of one side in CAST(...)"),
        ("left.m + right.m2 > 1", "left.m + right.m2 is about decimal(10,2); cast decimals"),
        ("right.u - left.t < INTERVAL 5 SECONDS", "add the interval to one side, as in right.t <"),
        ("left.d + right.i = right.e", "left.d + right.i is about date"),
        ("left.items = right.other", "is about array<int>; compute the part of each side"),
        ("right.c = right.c AND left.flag = (right.c = 'a')", None),
        ("left.x = right.c", "INDETERMINATE_COLLATION"),
        ("left.x COLLATE utf8_lcase = right.c", "text of the collation UTF8_BINARY"),
        ("rand() < right.b AND left.a < right.n", "takes a deterministic expression"),
        ("sum(left.a) < right.n", "without aggregates, windows and generators"),
        ("nobody(left.a) < right.n", "Spark does not take 'nobody(left.a)': [UNRESOLVED_ROUTINE]"),
        ("left.a AND right.sure", "DATATYPE_MISMATCH"),
        ("left.d < right.n", "DATATYPE_MISMATCH"),
    ],
)
def test_refusals(spark, schemas, where, says) -> None:
    if says is None:
        split(spark, schemas, where)
        return
    with pytest.raises(sk.SkewlessError) as refused:
        split(spark, schemas, where)
    assert says in str(refused.value)
    assert str(refused.value).startswith("where: ")


def test_the_columns_and_the_fingerprint_of_a_join(spark, tmp_path) -> None:
    def stream(schema: str) -> Any:
        return spark.readStream.schema(schema).parquet(str(tmp_path))

    sides = stream("k long, ts timestamp, a int"), stream("k long, ts timestamp, b double")
    options = {"on": "k", "time": "ts", "within": "1 second", "watermark": "1 second"}
    plain = sk.join(*sides, **options)
    narrowed = sk.join(*sides, **options, where=" left.a < right.b ")
    assert narrowed.columns == plain.columns == ["k", "ts", "a", "ts_right", "b"]
    assert "where" not in plain.node.operator.fingerprint
    assert narrowed.node.operator.fingerprint["where"] == ["left.a < right.b", "double"]
    operator = narrowed.node.operator
    assert operator.where == p.Predicate(p.Compare("<", L("p1"), R("p1")))
    chained = (
        "left.a < right.b AND left.k > 1 AND (a > 1 AND b > 2) AND k < 9 AND right.k = 3 OR a = 1"
    )
    sk.join(*sides, **options, where=chained)
    assert operator.layout.left_slots == ("p0", "p1")
    with pytest.raises(sk.SkewlessError, match="where: the right input has no column 'c'"):
        sk.join(*sides, **options, where="left.a < right.c")


def test_sparks_own_errors_stay_what_they_are(spark) -> None:
    """Spark logs them with a logger of its own class, which nobody else may make first."""
    script = """
import skewless as sk
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
spark = sk.session()
rows = spark.range(2).withColumn("ts", F.timestamp_seconds(F.lit(1)))
sk.join(rows, rows, on="id", time="ts", within="1 second", where="left.id < right.id")
try:
    spark.sql("select nope").collect()
except AnalysisException as failure:
    print(failure.getCondition())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "UNRESOLVED_COLUMN" in done.stdout, done.stderr[-2000:]
