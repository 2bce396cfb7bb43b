"""The process in which one way to map is measured: a fresh Java machine, one query, then the end.

It reads an `Errand` from its standard input and writes one JSON line per event to a pipe: `batch`,
as batches are done; `end`, with the record of all of them.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skewless.lab.bench.map_work import RESULT, SCHEMA, MapBatch, Waiting, batch_of, read_notes
from skewless.lab.bench.pipe import Emit, Request, answer, follow, session, settings, to_nowhere

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# More tasks than instances: Spark gives the next task to whoever is free.
TASKS_PER_INSTANCE = 8


@dataclass(frozen=True)
class Errand(Request):
    """What the process is to do."""

    engine: str
    files: str
    notes: str
    instances: int
    cost_key: str
    checkpoint: str
    driver_memory: str


Engine = Callable[["DataFrame", Errand], Any]


def _repartitioned(tasks_per_instance: int) -> Engine:
    def build(rows: "DataFrame", errand: Errand) -> Any:
        over_batches: Any = Waiting(errand.notes).over_batches
        tasks = tasks_per_instance * errand.instances
        return rows.repartition(tasks).mapInArrow(over_batches, RESULT)

    return build


def _mapped(policy: str, **options: Any) -> Engine:
    def build(rows: "DataFrame", errand: Errand) -> Any:
        import skewless as sk

        return sk.map(
            rows,
            Waiting(errand.notes),
            RESULT,
            cost_key=errand.cost_key,
            balance=getattr(sk, policy)(errand.instances, **options),
            per_row=True,
        )

    return build


SKEWLESS, PLAIN, DYNAMIC = "skewless", "repartition", "repartition8"
ENGINES: dict[str, Engine] = {
    PLAIN: _repartitioned(1),
    DYNAMIC: _repartitioned(TASKS_PER_INSTANCE),
    SKEWLESS: _mapped("LeastWork"),
    "posg": _mapped("Posg", window=32),
    "roundrobin": _mapped("RoundRobin"),
}


def measure(errand: Errand, emit: Emit) -> None:
    """Map the files, on a session of its own with a task slot for every instance."""
    # Waiting takes no core: so many tasks wait side by side on any machine.
    spark = session(errand.instances, settings(errand.driver_memory))
    batches = run(spark, errand, emit)
    emit({"event": "end", "batches": [asdict(batch) for batch in batches]})
    spark.stop()


def run(spark: "SparkSession", errand: Errand, emit: Emit) -> list[MapBatch]:
    """One query over all files; what its batches were."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    result = ENGINES[errand.engine](reader.parquet(errand.files), errand)
    done = follow(to_nowhere(result, errand.checkpoint), emit)
    waits = read_notes(Path(errand.notes))
    return [
        batch_of(p["batchId"], p["durationMs"]["addBatch"] / 1e3, waits.get(p["batchId"], ()))
        for p in done
    ]


if __name__ == "__main__":
    answer(Errand.from_json, measure)
