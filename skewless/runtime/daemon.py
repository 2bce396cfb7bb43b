"""The process that forks Python workers, with the engine's libraries already loaded.

Spark starts it in place of `pyspark.daemon` (setting `spark.python.daemon.module`): numpy, pyarrow
and the compiled kernels are loaded once here instead of once in every worker. What workers receive
they acknowledge at once.
"""

import gc
import os

# Workers are forked from here, and threads do not survive a fork.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pyspark.worker
from pyspark.daemon import manager

import skewless.operators.join.batch
import skewless.operators.join.emission
import skewless.operators.join.task
import skewless.operators.keyed.emission
import skewless.operators.keyed.task
import skewless.operators.lookup.loading
import skewless.operators.lookup.task
import skewless.operators.map.task
import skewless.operators.subscribe.task  # noqa: F401
from skewless.kernels.warmup import compile_kernels
from skewless.planning.shuffle.greedy import warm_up
from skewless.runtime.acknowledge import acknowledging

if __name__ == "__main__":
    compile_kernels()
    warm_up()
    pyspark.worker.main = acknowledging(pyspark.worker.main)
    gc.freeze()
    manager()
