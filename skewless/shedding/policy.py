"""What `shed=` of a join takes: how long a batch may last, and what is given up to keep to it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from skewless.durations import Duration, parse_duration_us
from skewless.errors import SkewlessError, bad_argument

ValueColumns = str | tuple[str | None, str | None]


class Shedding(ABC):
    """What all ways of shedding have in common."""

    # The longest that a batch may take from its start to its commit; None: the trigger's interval.
    max_latency: Duration | None

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The way of shedding and its options."""

    @property
    def max_latency_us(self) -> int | None:
        """The limit in microseconds, where it is given."""
        if self.max_latency is None:
            return None
        return parse_duration_us("max_latency", self.max_latency)

    def limit_us(self, interval_us: int | None) -> int:
        """The limit that holds in a query whose trigger has this interval."""
        limit = self.max_latency_us or interval_us
        if not limit:
            raise SkewlessError(
                f"shed: {type(self).__name__} has no max_latency, and the trigger has no interval; "
                'give one of them: sk.Shed(max_latency="2 seconds"), or '
                '.trigger(processingTime="2 seconds")'
            )
        return limit

    def _check(self) -> None:
        limit = self.max_latency_us
        if limit is not None and limit <= 0:
            raise bad_argument("max_latency", self.max_latency, "a duration above 0, or None")


@dataclass(frozen=True)
class Shed(Shedding):
    """Probes the most productive part of the windows, as much of it as time allows.

    Every row is stored, unless there are so many that storing them alone takes too long.

    `value` names the column that says what a row is worth (one name for both sides, or one per
    side, None where a side has none): the sum of the values of the results is made as large as
    possible, where a result is worth the sum of its rows. Without it every result is worth the
    same. The join window is cut into `basic_windows` parts, with an open end into parts that become
    longer; `sample` of the probed fraction is
    probed in full, to learn which parts give most and how much is missed.

    >>> Shed(max_latency="2 seconds").max_latency_us
    2000000
    """

    max_latency: Duration | None = None
    value: ValueColumns | None = None
    basic_windows: int = 20
    sample: float = 0.1

    def __post_init__(self) -> None:
        self._check()
        _ = self.values
        count, sample = self.basic_windows, self.sample
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 200:
            raise bad_argument("basic_windows", count, "a whole number from 1 to 200")
        if isinstance(sample, bool) or not isinstance(sample, int | float) or not 0 < sample <= 1:
            raise bad_argument("sample", sample, "a number above 0, at most 1")

    @property
    def values(self) -> tuple[str | None, str | None]:
        """The column of either side that says what a row is worth."""
        value = self.value
        if value is None or isinstance(value, str):
            return value, value
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise bad_argument("value", value, "a column name, or one per side, or None")
        if not all(name is None or isinstance(name, str) for name in value):
            raise bad_argument("value", value, "a column name, or one per side, or None")
        return value[0], value[1]

    def describe(self) -> dict[str, Any]:
        return {
            "policy": "Shed",
            "maxLatencyUs": self.max_latency_us,
            "value": None if self.value is None else list(self.values),
            "basicWindows": self.basic_windows,
            "sample": self.sample,
        }


@dataclass(frozen=True)
class RandomDrop(Shedding):
    """Drops rows at random and joins the rest in full: the baseline, not a recommendation.

    >>> RandomDrop("1 second").describe()
    {'policy': 'RandomDrop', 'maxLatencyUs': 1000000}
    """

    max_latency: Duration | None = None

    def __post_init__(self) -> None:
        self._check()

    def describe(self) -> dict[str, Any]:
        return {"policy": "RandomDrop", "maxLatencyUs": self.max_latency_us}
