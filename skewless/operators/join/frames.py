"""Two DataFrames that do not stream: their join as a DataFrame."""

from typing import TYPE_CHECKING, Any

from skewless.errors import bad_argument
from skewless.operators.join.batch import BatchTask
from skewless.operators.join.bounds import SIDES
from skewless.operators.join.operator import JoinOperator
from skewless.planning.hash import Hash
from skewless.runtime.batches import joined_frame, parallelism
from skewless.shedding.policy import Shedding
from skewless.state.watermark import Delays

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def nothing_late(shed: Shedding | None) -> Delays:
    """All rows are there at once, so none is late, and all are probed."""
    if shed is not None:
        raise bad_argument("shed", shed, "None where nothing streams")
    return Delays(dict.fromkeys(SIDES, 0))


def joined_batch(rows: "DataFrame", operator: JoinOperator, schema: Any) -> "DataFrame":
    """The join of all rows, computed when it is asked for, as often as it is."""
    cores = parallelism(rows.sparkSession)
    # Keys are dealt out by their hash, whatever the policy: a batch leaves nothing to learn from.
    route = Hash(operator.policy.start(cores).instances).start(cores)
    return joined_frame(rows, BatchTask(operator, route), route, schema)
