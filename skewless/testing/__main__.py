"""The driver process that `skewless.testing.Driver` starts and kills."""

import sys
from pathlib import Path

from pyspark import cloudpickle

from skewless.testing.driver import JOB
from skewless.testing.replay import Replay


def main(folder: Path) -> None:
    session, build, faults, options = cloudpickle.loads((folder / JOB).read_bytes())
    spark = session()
    Replay(spark, folder).start(build, faults, **options).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
