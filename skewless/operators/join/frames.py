"""Two DataFrames that do not stream: their join as a DataFrame."""

from typing import TYPE_CHECKING, Any

from skewless.errors import bad_argument
from skewless.kernels.conditions import SetCondition
from skewless.kernels.intervals import MAX_TIME
from skewless.operators.join.batch import BatchTask
from skewless.operators.join.bounds import SIDES, Bounds
from skewless.operators.join.how import INNER
from skewless.operators.join.operator import JoinOperator
from skewless.planning.hash import Hash
from skewless.runtime.batches import joined_frame
from skewless.runtime.session import parallelism
from skewless.shedding.policy import Shedding
from skewless.state.watermark import Delays

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def nothing_late(shed: Shedding | None) -> Delays:
    """All rows are there at once, so none is late, and all are probed."""
    if shed is not None:
        raise bad_argument("shed", shed, "None where nothing streams")
    return Delays(dict.fromkeys(SIDES, 0))


def closed(bounds: Bounds) -> Bounds:
    """Bounds that all rows are within where there was none: every row is due in the end."""
    return Bounds(
        -MAX_TIME if bounds.lower_us is None else bounds.lower_us,
        MAX_TIME if bounds.upper_us is None else bounds.upper_us,
    )


def joined_batch(rows: "DataFrame", operator: JoinOperator, schema: Any) -> "DataFrame":
    """The join of all rows, computed when it is asked for, as often as it is."""
    cores = parallelism(rows.sparkSession)
    # Keys are dealt out by their hash, whatever the policy: a batch leaves nothing to learn from.
    instances = operator.policy.start(cores).instances
    if isinstance(operator.condition, SetCondition) and operator.how != INNER:
        # A set is found on several instances, and none of them would know of a match elsewhere.
        instances = 1
    route = Hash(instances).start(cores)
    return joined_frame(rows, BatchTask(operator, route), route, schema)
