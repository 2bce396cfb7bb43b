"""What the engine asks of an operator, and what most operators answer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

from skewless.engine.setting import Setting
from skewless.load.report import Report
from skewless.state.commit import OperatorState
from skewless.state.manifest import Segments
from skewless.state.segment import Segment
from skewless.state.storage import Storage


class Operator(ABC):
    """One operator of a query, from commit to commit.

    A batch's result is what its tasks give (unless it `waits`) and what its emission gives (if it
    `emits`).
    """

    fingerprint: dict[str, Any]  # what a checkpoint must agree with

    @property
    def emits(self) -> bool:
        """Whether the watermark of a batch may make rows due."""
        return False

    @property
    def waits(self) -> bool:
        """Whether its tasks give no rows: all are due only when the watermark is known."""
        return False

    @property
    def sheds(self) -> bool:
        """Whether it does less when batches take too long, and so must know how long they take."""
        return False

    @property
    def gives_watermark(self) -> bool:
        """Whether the result can have a watermark at all."""
        return True

    def triggered(self, interval_us: int | None) -> Self:
        """The same in a query whose trigger has this interval, if any."""
        return self

    @abstractmethod
    def initial_state(self, cores: int) -> OperatorState:
        """What a new query begins with."""

    @abstractmethod
    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        """A committed state under today's options."""

    @abstractmethod
    def order(self, state: OperatorState) -> tuple[int, ...]:
        """The instances in the order in which their tasks should start."""

    @abstractmethod
    def task(self, state: OperatorState, setting: Setting) -> Any:
        """What runs on every instance."""

    def loading(self, state: OperatorState, setting: Setting, now_us: int) -> Any | None:
        """The task that stores a table before the others run; None: it is not to be read now.

        `now_us` is the time of the driver, in microseconds since 1970.
        """
        return None

    def loaded(
        self, state: OperatorState, segments: Sequence[Segment], now_us: int
    ) -> OperatorState:
        """The state with a new copy of the table, which these segments hold."""
        raise NotImplementedError("asked of operators that load a table")

    @abstractmethod
    def advance(
        self, state: OperatorState, reports: Sequence[Report], elapsed_ms: float | None
    ) -> OperatorState:
        """The state after a batch whose tasks have all reported.

        `elapsed_ms` is how long the batch takes from its start to its commit; None for the first
        of a process, of which that says little.
        """

    def emission(
        self,
        before: OperatorState,
        after: OperatorState,
        storage: Storage,
        stored: Callable[[], Segments],
        batch: int,
    ) -> Any | None:
        """The task that gives what the watermark has made due; None: there is nothing to give."""
        return None

    @abstractmethod
    def output_watermark_us(self, state: OperatorState) -> int | None:
        """No later row of the result has this event time, or an earlier one."""

    @abstractmethod
    def progress(self, state: OperatorState, reports: Sequence[Report]) -> dict[str, Any]:
        """What progress says of a batch."""
