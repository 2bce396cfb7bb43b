"""The simulated machines and the course of a run."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cluster:
    """Join instances, dealt out to nodes in turn.

    An instance serves one tuple after the other. The instances of a node share its cores: where
    they want more than there is, all of them slow down alike. `overhead` is the share of a core
    that an instance uses for itself. Without `nodes` every instance has a core of its own.
    A tuple takes `route_s` to reach its instance, and `lookup_s` more for each doubling of the
    explicit entries (split or moved keys).

    >>> float(Cluster(instances=28, nodes=14).slowdown(np.full(28, 1.0)).max())
    1.0
    """

    instances: int
    nodes: int | None = None
    cores_per_node: float = 2.0
    overhead: float = 0.0
    route_s: float = 0.0
    lookup_s: float = 0.0

    def __post_init__(self) -> None:
        if self.instances < 1:
            raise bad_argument("instances", self.instances, "a whole number of at least 1")
        if self.nodes is not None and self.nodes < 1:
            raise bad_argument("nodes", self.nodes, "a whole number of at least 1, or None")
        for name in ("overhead", "route_s", "lookup_s"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise bad_argument(name, value, "a finite number of at least 0")
        if not self.cores_per_node > 0:
            raise bad_argument("cores_per_node", self.cores_per_node, "a number above 0")
        if self.nodes is not None:
            crowd = -(-self.instances // self.nodes)
            if crowd * self.overhead >= self.cores_per_node:
                raise bad_argument(
                    "overhead", self.overhead, f"less than the cores for {crowd} instances a node"
                )

    def slowdown(self, wanted: Floats) -> Floats:
        """The factor on every instance's service times when it wants this share of a core."""
        if self.nodes is None:
            return np.ones(self.instances)
        node = np.arange(self.instances) % self.nodes
        usable = self.cores_per_node - self.overhead * np.bincount(node, minlength=self.nodes)
        demand = np.bincount(node, weights=np.minimum(wanted, 1.0), minlength=self.nodes)
        # An empty node has no demand; its cores are not divided by.
        factor: Floats = np.maximum(1.0, demand / usable)[node]
        return factor

    def routing_delay_s(self, entries: int) -> float:
        """How long a tuple is on its way with so many explicit entries in the table."""
        return self.route_s + self.lookup_s * float(np.log2(1 + entries))


@dataclass(frozen=True)
class Course:
    """How long a run is, and when the controller looks.

    The window starts full, so nothing has to fill up; figures are taken after `warm_up_s`, when the
    controller has found its table. `hot_keys` is how many keys are reported by themselves.
    """

    duration_s: float = 30.0
    warm_up_s: float = 20.0
    period_s: float = 1.0
    window_s: float = 10.0
    hot_keys: int = 256

    def __post_init__(self) -> None:
        for name in ("duration_s", "period_s", "window_s"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise bad_argument(name, value, "seconds above 0")
        if not 0 <= self.warm_up_s < self.duration_s:
            raise bad_argument("warm_up_s", self.warm_up_s, "seconds from 0 to below duration_s")
        if self.hot_keys < 0:
            raise bad_argument("hot_keys", self.hot_keys, "a whole number of at least 0")
