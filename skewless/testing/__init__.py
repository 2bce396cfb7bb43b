"""A public test kit: replay micro-batches, kill at a named point, compare with an oracle."""

from skewless.state.faults import POINTS, Fault, SimulatedKill
from skewless.testing.cluster import Cluster, standalone_cluster
from skewless.testing.driver import Driver
from skewless.testing.local import LocalJoin
from skewless.testing.oracle import assert_same_rows, join_oracle
from skewless.testing.processes import ProcessTree, wait_until
from skewless.testing.replay import Replay

__all__ = [
    "POINTS",
    "Cluster",
    "Driver",
    "Fault",
    "LocalJoin",
    "ProcessTree",
    "Replay",
    "SimulatedKill",
    "assert_same_rows",
    "join_oracle",
    "standalone_cluster",
    "wait_until",
]
