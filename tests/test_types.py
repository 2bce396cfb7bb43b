"""What a type checker says of a user's file: right calls pass, slips of the pen do not."""

from pathlib import Path

from mypy import api

ROOT = Path(__file__).parent.parent

RIGHT = """
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import skewless as sk


def wait_for(query: StreamingQuery) -> None:
    query.awaitTermination()


def policy(name: str) -> sk.Policy:
    return sk.Mixed(instances=(2, 8)) if name == "keys" else sk.Hash()


def build(left: DataFrame, right: DataFrame, balance: sk.Policy | None = None) -> sk.Stream:
    joined = sk.join(left, right, on="k", time="ts", within="1 minute", balance=policy("keys"))
    mapped = sk.map(joined, dict, "k long, ts timestamp", cost_key="k", balance=sk.Posg())
    counts = sk.keyed(mapped, "k", time="ts", window="1 hour", process=sk.Count(), balance=balance)
    return counts.where("count > 1").withColumn("twice", F.col("count") * 2).select("k", "twice")


def run(spark: SparkSession, out: str) -> sk.Query:
    stream = spark.readStream.format("rate").load()
    query: sk.Query = build(stream, stream, balance=sk.PKG()).writeStream.toTable("t")
    wait_for(query)
    query.explainBalance()
    progress: Any = query.lastProgress
    return build(stream, stream, sk.Auto()).writeStream.start(out)


wanted: type[Warning] = sk.StateGrowsWarning
"""

WRONG = {
    "sk.jion(1)": 'has no attribute "jion"',
    "sk.Hash('four')": "incompatible type",
    "sk.join(1, 2)": "incompatible type",
    "sk.Auto().tabel(2)": 'has no attribute "tabel"',
}


def test_a_users_file_is_checked(tmp_path: Path, monkeypatch) -> None:
    """In one run, from the root: `make lint` has filled the cache that is used here."""
    monkeypatch.chdir(ROOT)
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(RIGHT)
    wrong.write_text("import skewless as sk\n" + "\n".join(WRONG))
    told, problems, _ = api.run([str(right), str(wrong)])
    assert not problems
    errors = [line for line in told.splitlines() if ": error: " in line]
    assert not [line for line in errors if "right.py" in line], told
    for number, (call, says) in enumerate(WRONG.items(), start=2):
        found = [e for e in errors if f"wrong.py:{number}: " in e]
        assert any(says in e for e in found), f"{call}: {told}"
