"""What a policy for maps offers: the first tiles, and after every round the next ones."""

from skewless.errors import bad_argument
from skewless.planning.decision import Limits
from skewless.planning.policy import Policy
from skewless.planning.scaling import BUSY_MS, Instances, wanted
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.cells import MAX_SIDE, CellGrid
from skewless.routing.tiles import TileRoute, even_tiles

_UNIT = (0.0, 0.0, 1.0, 1.0)
CELLS = 64


class TilePolicy(Policy[TileSnapshot, TileRoute]):
    """A policy for subscriptions: a map of `cells` × `cells`, cut into tiles.

    The control loop reads the attributes below. A policy declares those that are its options as
    fields.
    """

    # The number of instances. None: one per core. (lowest, highest): as many as the load needs; an
    # instance is busy if it works for longer than `busy_ms` per batch.
    instances: Instances = None
    busy_ms: float = BUSY_MS
    # It plans once every `every` batches.
    every: int = 1
    # The side of the map in cells: a power of two.
    cells: int = CELLS

    def tiles(self, grid: CellGrid, cores: int) -> TileRoute:
        """The tiles of a new query on a cluster with this many cores."""
        return even_tiles(grid, wanted(self.instances, cores))

    def start(self, cores: int) -> TileRoute:
        """The tiles of a map whose bounds are not known: of the unit square."""
        return self.tiles(CellGrid(self.cells, _UNIT), cores)

    def resized(self, route: TileRoute, instances: int) -> TileRoute:
        """The tiles for another number of instances, with as much as possible where it is."""
        return route.resized(instances)

    def limits(self, partitions: int) -> Limits:
        """The limits of its plans."""
        return Limits()


def check_cells(cells: object) -> None:
    """Refuse what cannot be the side of a map."""
    powers = [2**n for n in range(MAX_SIDE.bit_length())]
    if isinstance(cells, bool) or cells not in powers:
        raise bad_argument("cells", cells, f"a power of two from 1 to {MAX_SIDE}")
