"""Ride hailing: which drivers were in the cell of an order within ten seconds of it?"""

import argparse
from typing import Any

from pyspark.sql import SparkSession

import skewless as sk

ORDERS = "order_id long, cell long, ordered_at timestamp, x double, y double"
DRIVERS = "driver_id long, cell long, seen_at timestamp, x double, y double"


def dispatch(spark: SparkSession, orders: str, drivers: str, out: str, balance: Any = None) -> Any:
    matches = sk.join(
        spark.readStream.schema(ORDERS).parquet(orders),
        spark.readStream.schema(DRIVERS).parquet(drivers),
        on="cell",
        time=("ordered_at", "seen_at"),
        within=("-10 seconds", "10 seconds"),
        watermark="5 seconds",
        balance=balance or sk.Auto(),
    )
    sink = matches.writeStream.format("parquet").option("checkpointLocation", f"{out}/checkpoint")
    return sink.trigger(processingTime="1 second").start(f"{out}/results")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    for name in ("orders", "drivers", "out"):
        arguments.add_argument(name, help="a folder")
    folders = vars(arguments.parse_args())
    dispatch(sk.session(), **folders).awaitTermination()
