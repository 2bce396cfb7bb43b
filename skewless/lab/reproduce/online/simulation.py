"""Runs a shuffle policy tuple by tuple on simulated instances: POSG's evaluation (§V)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument
from skewless.lab.reproduce.online import kernel, posg_machines
from skewless.lab.reproduce.online.posg_machines import new_posg
from skewless.lab.reproduce.online.references import FullKnowledge, LeastOutstanding
from skewless.lab.reproduce.online.streams import CostlyStream, Floats
from skewless.lab.reproduce.online.work_ledger import new_ledger
from skewless.load.sketches import SketchShape
from skewless.planning.checks import check_instances, check_number
from skewless.planning.leastwork import LeastWork
from skewless.planning.posg import Posg
from skewless.planning.roundrobin import RoundRobin

OnlinePolicy = RoundRobin | LeastOutstanding | FullKnowledge | Posg | LeastWork

_KINDS: dict[type, int] = {
    RoundRobin: kernel.ROUND_ROBIN,
    LeastOutstanding: kernel.LEAST_OUTSTANDING,
    FullKnowledge: kernel.FULL_KNOWLEDGE,
    Posg: kernel.POSG,
    LeastWork: kernel.LEAST_WORK,
}
_NO_SKETCH = SketchShape(1, 1)


@dataclass(frozen=True)
class ShuffleCourse:
    """How a stream meets the instances.

    Tuples arrive at a constant rate, `over_provisioning` times slower than all instances together
    could just serve. `factors` is how much longer each instance takes than the stream says, and
    `factors_after` the same from the tuple number `change_at` on. The scheduler hears of a tuple
    `delay_ms` after it is done.
    """

    instances: int = 5
    over_provisioning: float = 1.0
    delay_ms: float = 1.0
    factors: tuple[float, ...] | None = None
    factors_after: tuple[float, ...] | None = None
    change_at: int = 0

    def __post_init__(self) -> None:
        check_instances(self.instances)
        check_number("over_provisioning", self.over_provisioning, 0.0)
        check_number("delay_ms", self.delay_ms, -1e-9)
        for name in ("factors", "factors_after"):
            given = getattr(self, name)
            if given is not None and (len(given) != self.instances or min(given) <= 0):
                takes = f"a number above 0 for each of {self.instances} instances"
                raise bad_argument(name, given, takes)

    @property
    def speeds(self) -> Floats:
        before = self.factors or (1.0,) * self.instances
        return np.array([before, self.factors_after or before])


@dataclass(frozen=True, eq=False)
class ShuffleRun:
    """What became of every tuple."""

    completion_ms: Floats  # from arrival to done
    instance: npt.NDArray[np.int64]
    messages: int = 0  # matrices and replies that POSG's instances sent
    run_from: int | None = None  # the first tuple that POSG scheduled in its RUN state
    renewed_at: int | None = None  # the first tuple after the change at which matrices came in

    @property
    def mean_ms(self) -> float:
        """L̄, the mean completion time."""
        return float(self.completion_ms.mean())


def simulate_shuffle(
    policy: OnlinePolicy, stream: CostlyStream, course: ShuffleCourse
) -> ShuffleRun:
    """One run; nothing in it is random. The policy's own number of instances is not asked for.

    >>> stream = CostlyStream(np.array([0, 1, 0]), np.array([10e3, 1e3]))
    >>> course = ShuffleCourse(instances=2, over_provisioning=2 / 7)  # a tuple per second
    >>> simulate_shuffle(RoundRobin(), stream, course).completion_ms.sum().item()
    29000.0
    """
    if type(policy) not in _KINDS:
        raise bad_argument("policy", policy, "a policy that assigns one tuple at a time")
    shape, window, mu, decay, heaviest = _NO_SKETCH, 1, 0.0, 1.0, 0
    if isinstance(policy, Posg | LeastWork):
        shape, window = policy.blank().shape, policy.window
    if isinstance(policy, Posg):
        mu = policy.mu
    if isinstance(policy, LeastWork):
        decay, heaviest = policy.decay, policy.heaviest
    k, m = course.instances, len(stream.items)
    costs = stream.costs
    arrives = np.arange(m) * (float(costs.mean()) * course.over_provisioning / k)
    # A line of cells per item, side by side in memory.
    cells = np.ascontiguousarray(shape.columns_of(stream.hashes).T)
    posg = new_posg(k, shape.rows, shape.columns)
    ledger = new_ledger(k, shape.rows, shape.columns, len(stream.cost_of_item), heaviest)
    posg.scheduler[posg_machines.CHANGE] = course.change_at
    target, done = np.empty(m, np.int64), np.empty(m)
    kernel.shuffle(
        _KINDS[type(policy)], arrives, stream.items, costs, cells, course.speeds, course.change_at,
        float(course.delay_ms), posg, ledger, window, float(mu), float(decay), target, done,
    )  # fmt: skip
    if not isinstance(policy, Posg):
        return ShuffleRun(done - arrives, target)
    scheduler = posg.scheduler
    return ShuffleRun(
        done - arrives,
        target,
        int(scheduler[posg_machines.MESSAGES]),
        _or_none(scheduler[posg_machines.FIRST_RUN]),
        _or_none(scheduler[posg_machines.RENEWED]),
    )


def _or_none(number: np.int64) -> int | None:
    return int(number) if number >= 0 else None
