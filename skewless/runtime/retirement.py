"""A Python worker that Spark does not use for another task."""

import sys
from typing import Any, NoReturn

# The worker's module, under the name it has where no daemon forks it, too.
_WORKER_MODULES = ("pyspark.worker", "__main__")


def retire() -> None:
    """Lets the worker end once its task has: threads that were given up end with it.

    When a task is done, a worker reads that Spark has sent everything, and answers that it can be
    used again. One that reads something else says that it cannot, and exits; the task is not
    affected. There is no setting for it, so what is read is changed, in this process alone. Where
    Spark is not as expected, the worker stays.
    """
    try:
        from pyspark.messages import SparkMessageReceiver
    except ImportError:  # before Spark 4.3 the worker's main function reads it
        for name in _WORKER_MODULES:
            module = sys.modules.get(name)
            if hasattr(module, "read_int") and hasattr(module, "read_udfs"):
                vars(module)["read_int"] = _something_else
        return
    receiver: Any = SparkMessageReceiver
    receiver.get_finish_signal_from_stream = _refuse


def _something_else(_: Any) -> int:
    return 0


def _refuse(_: Any) -> NoReturn:
    raise EOFError("calls that were given up still run in this worker")
