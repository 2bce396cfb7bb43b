"""Ride hailing by distance: which free drivers were within 500 m of an order in the last 30 s?"""

import argparse
from typing import Any

from pyspark.sql import SparkSession

import skewless as sk

ORDERS = "order_id long, ordered_at timestamp, lon double, lat double"
DRIVERS = "driver_id long, seen_at timestamp, lon double, lat double, free boolean"


def nearby(spark: SparkSession, orders: str, drivers: str, out: str, balance: Any = None) -> Any:
    matches = sk.join(
        spark.readStream.schema(ORDERS).parquet(orders),
        spark.readStream.schema(DRIVERS).parquet(drivers).where("free"),
        match=sk.Near(metres=500, left=("lon", "lat"), distance="metres"),
        time=("ordered_at", "seen_at"),
        within=("-30 seconds", "0 seconds"),
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
    nearby(sk.session(), **folders).awaitTermination()
