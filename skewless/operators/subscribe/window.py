"""How long past points are kept, for those who ask for them later."""

from dataclasses import dataclass
from typing import Any

from skewless.errors import bad_argument
from skewless.kernels.ordering import TimeArray


@dataclass(frozen=True)
class PastWindow:
    """The points of the last `size_us`, or (tumbling) since the last multiple of it."""

    size_us: int
    tumbling: bool = False

    def __post_init__(self) -> None:
        if self.size_us <= 0:
            raise bad_argument("window", self.size_us, "a duration above 0")

    def starts(self, until_us: TimeArray) -> TimeArray:
        """The first moment of the window that is asked for at a moment.

        >>> import numpy as np
        >>> PastWindow(10).starts(np.array([25])).tolist()
        [16]
        >>> PastWindow(10, tumbling=True).starts(np.array([25])).tolist()
        [20]
        """
        if self.tumbling:
            return until_us // self.size_us * self.size_us
        return until_us - self.size_us + 1

    def keep_from_us(self, watermark_us: int | None) -> int | None:
        """Nobody asks for points before this moment any more; None: all may be asked for."""
        return None if watermark_us is None else watermark_us - self.size_us

    def describe(self) -> dict[str, Any]:
        return {"sizeUs": self.size_us, "tumbling": self.tumbling}
