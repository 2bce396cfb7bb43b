"""The types of a join: which pairs are given, and what becomes of rows without a match."""

from dataclasses import dataclass
from typing import Any

from skewless.errors import SkewlessError, bad_argument
from skewless.operators.join.bounds import LEFT, RIGHT, Bounds
from skewless.state.watermark import Delays

# The names of the types, each with Spark's other spellings of it, without underscores.
_SPELLINGS = {
    "inner": ("inner",),
    "left": ("left", "leftouter"),
    "right": ("right", "rightouter"),
    "full": ("full", "outer", "fullouter"),
    "left_semi": ("leftsemi", "semi"),
    "left_anti": ("leftanti", "anti"),
}


@dataclass(frozen=True)
class How:
    """A type of join, by the name that Spark has for it."""

    name: str = "inner"

    def __post_init__(self) -> None:
        if self.name not in _SPELLINGS:
            raise bad_argument("how", self.name, f"one of {', '.join(map(repr, _SPELLINGS))}")

    @staticmethod
    def of(given: Any) -> "How":
        """The type that a text means, in any of Spark's spellings.

        >>> How.of("LeftOuter").name, How.of("outer").name, How.of("semi").name
        ('left', 'full', 'left_semi')
        """
        text = given.lower().replace("_", "") if isinstance(given, str) else None
        for name, spellings in _SPELLINGS.items():
            if text in spellings:
                return How(name)
        takes = f"one of {', '.join(map(repr, _SPELLINGS))} ('outer', 'left_outer', 'semi', …)"
        raise bad_argument("how", given, takes)

    @property
    def gives_pairs(self) -> bool:
        """Whether every pair that matches is given, and so the columns of both sides."""
        return not self.is_semi and not self.is_anti

    @property
    def is_semi(self) -> bool:
        return self.name == "left_semi"

    @property
    def is_anti(self) -> bool:
        return self.name == "left_anti"

    @property
    def padded(self) -> tuple[str, ...]:
        """The sides whose rows are given alone when the watermark says that none will match."""
        padded = {"left": (LEFT,), "left_anti": (LEFT,), "right": (RIGHT,), "full": (LEFT, RIGHT)}
        return padded.get(self.name, ())

    @property
    def awaited(self) -> tuple[str, ...]:
        """The sides of whose rows it must be known, as long as they may match, whether they did."""
        return (LEFT,) if self.is_semi else self.padded

    def check(self, bounds: Bounds, delays: Delays) -> None:
        """Refuses a join whose rows could never be known to have no match."""
        for side in self.awaited:
            other, end, bound = (
                (RIGHT, "upper", bounds.upper_us)
                if side == LEFT
                else (LEFT, "lower", bounds.lower_us)
            )
            why = f"how={self.name!r} has to know when a {side} row can match nothing any more"
            if bound is None:
                raise SkewlessError(
                    f"within: got no {end} bound; takes one, because {why}: "
                    'for example within=("-10 seconds", "10 seconds")'
                )
            if delays.by_side[other] is None:
                raise SkewlessError(
                    f"watermark: got None for the {other} side; takes a duration, because {why}"
                )


INNER = How()
