"""Live segments without manifests and storage, for tests of what a task does with them."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from skewless.state.segment import Segment


@dataclass(frozen=True)
class HeldSegments:
    """Segments in memory, looked at as tasks look at stored ones."""

    segments: tuple[Segment, ...] = ()

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.segments)

    def meeting(self, side: str, partitions: frozenset[int], of: int) -> list[Segment]:
        return [s for s in self.segments if s.side == side and s.meets(partitions, of)]

    def written_by(self, instance: int, of: int) -> list[Segment]:
        return [s for s in self.segments if s.instance % of == instance]

    def oldest_batch(self, side: str, but: Collection[str]) -> int | None:
        others = [s for s in self.segments if s.side == side and s.name not in but]
        return min((s.first_batch for s in others), default=None)
