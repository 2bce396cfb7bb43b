"""How a join that sheds decides what its next batch may probe, from the reports of the last."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skewless.load.report import Report
from skewless.shedding.account import Account
from skewless.shedding.estimate import Missed
from skewless.shedding.memory import ProbingMemory
from skewless.shedding.plan import ProbePlan
from skewless.shedding.policy import RandomDrop, Shedding
from skewless.shedding.windows import FAR_US, BasicWindows

# Of what is remembered; what another version has left is forgotten.
_VERSION = 1


@dataclass(frozen=True)
class ProbingControl:
    """The part of the control loop that looks at the time of a batch instead of its balance."""

    shedding: Shedding
    windows: BasicWindows
    limit_ms: float  # the longest that a batch may take

    def start(self, cores: int) -> dict[str, Any]:
        """What a new query remembers."""
        return self._told(ProbingMemory.of(self.shedding, self.windows), cores)

    def adopt(self, record: dict[str, Any] | None, cores: int) -> dict[str, Any]:
        """What a query goes on with under today's options and number of cores."""
        if record is None or record.get("version") != _VERSION:
            return self.start(cores)
        if record["shedding"] != self.shedding.describe():
            return self.start(cores)
        if record["windows"] != self.windows.to_json():
            return self.start(cores)
        return record if record["cores"] == cores else {**record, "cores": cores}

    def plan(self, record: dict[str, Any], instances: int, batch: int) -> ProbePlan:
        """What the tasks of a batch are told."""
        return ProbingMemory.from_json(record["memory"]).plan(
            self.shedding,
            self.windows,
            instances=instances,
            cores=record["cores"],
            limit_ms=self.limit_ms,
            batch=batch,
        )

    def after(
        self, record: dict[str, Any], reports: Sequence[Report], elapsed_ms: float | None
    ) -> dict[str, Any]:
        """What is remembered after a batch."""
        cores = record["cores"]
        memory = ProbingMemory.from_json(record["memory"])
        memory = memory.after(accounts_of(reports), elapsed_ms, self.limit_ms, cores)
        return self._told(memory, cores)

    def _told(self, memory: ProbingMemory, cores: int) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "shedding": self.shedding.describe(),
            "windows": self.windows.to_json(),
            "cores": cores,
            "memory": memory.to_json(),
        }

    def progress(
        self, record: dict[str, Any], reports: Sequence[Report], instances: int
    ) -> dict[str, Any]:
        """What progress says of a batch: how much was probed, and what was missed."""
        accounts = accounts_of(reports)
        offered = sum(a.offered for a in accounts)
        missed = sum((a.missed for a in accounts), Missed())
        # What rows that were dropped would have matched, nobody knows.
        is_known = not isinstance(self.shedding, RandomDrop)
        plan = self.plan(record, instances, 0)
        width = len(self.windows)
        edges = self.windows.edges_us

        def mean(name: str) -> float:
            weighted = sum(getattr(a, name) * a.offered for a in accounts)
            return round(weighted / offered, 6) if offered else 1.0

        return {
            "policy": self.shedding.describe()["policy"],
            "maxLatencyMs": self.limit_ms,
            "fraction": mean("fraction"),
            "leftWindow": mean("left"),
            "rightWindow": mean("right"),
            "offered": offered,
            "comparisons": sum(a.comparisons for a in accounts),
            "results": sum(a.matches for a in accounts),
            "missed": round(missed.results, 1) if is_known else None,
            "missedError": round(missed.standard_error, 1) if is_known else None,
            "droppedRows": {
                side: sum(a.dropped[side] for a in accounts)
                for side in (accounts[0].dropped if accounts else {})
            },
            # The basic windows by right.time − left.time in milliseconds, both ends inclusive, the
            # best first.
            "ranking": [
                [_shown_ms(edges[cell % width]), _shown_ms(edges[cell % width + 1] - 1)]
                for cell in plan.order
                if cell // width == plan.classes - 1
            ],
        }


def _shown_ms(edge_us: int) -> float | None:
    """Milliseconds; None: the window has no end."""
    return None if abs(edge_us) >= FAR_US - 1 else edge_us / 1e3


def accounts_of(reports: Sequence[Report]) -> list[Account]:
    """What the tasks of a batch say of their probing, by instance."""
    by_instance = sorted(reports, key=lambda r: r.instance)
    return [Account.from_json(r.probing) for r in by_instance if r.probing is not None]
