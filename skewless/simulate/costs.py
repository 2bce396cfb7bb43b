"""What a tuple costs an instance: the papers' scan of stored rows, and our sorted index."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from skewless.errors import bad_argument

Kind = Literal["scan", "index"]
Scope = Literal["instance", "partition"]


@dataclass(frozen=True)
class Costs:
    """Service times in seconds.

    A tuple costs `tuple_s`; one that probes also pays for what it looks at and for its matches.
    'scan' compares with every row of the other side that is stored in `scope`: the whole instance,
    or the tuple's partition. 'index' compares with the logarithm of the rows on the instance.
    `migrate_s` is paid by the source and by the target for every stored row that changes its place.

    >>> Costs.scan(tuple_s=1e-4, compare_s=1e-8).scope
    'instance'
    """

    kind: Kind
    scope: Scope
    tuple_s: float
    compare_s: float
    match_s: float = 0.0
    migrate_s: float = 0.0
    exponential: bool = False  # service times vary around their mean, as in M/M/1

    def __post_init__(self) -> None:
        if self.kind not in ("scan", "index"):
            raise bad_argument("kind", self.kind, "'scan' or 'index'")
        if self.scope not in ("instance", "partition"):
            raise bad_argument("scope", self.scope, "'instance' or 'partition'")
        for name in ("tuple_s", "compare_s", "match_s", "migrate_s"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise bad_argument(name, value, "seconds, finite and at least 0")

    @staticmethod
    def scan(
        *,
        tuple_s: float,
        compare_s: float,
        scope: Scope = "instance",
        match_s: float = 0.0,
        migrate_s: float = 0.0,
        exponential: bool = False,
    ) -> "Costs":
        """The papers' join: a probe looks at every stored row in its scope."""
        return Costs("scan", scope, tuple_s, compare_s, match_s, migrate_s, exponential)

    @staticmethod
    def index(
        *,
        tuple_s: float,
        compare_s: float,
        match_s: float,
        migrate_s: float = 0.0,
        exponential: bool = False,
    ) -> "Costs":
        """Our join: a probe searches sorted rows and pays for its matches."""
        return Costs("index", "instance", tuple_s, compare_s, match_s, migrate_s, exponential)
