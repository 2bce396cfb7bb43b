"""File names of a batch, made of who writes them: batch, operator, attempt, instance."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchNames:
    """Names for one attempt at one batch of one operator.

    The attempt is new each time the driver begins a batch: what a task of a dead driver may still
    write never meets the files of the living one.
    """

    batch: int
    operator: int
    attempt: str

    def segment(self, instance: int, side: str, part: str) -> str:
        return f"{self._stem(instance)}-{side}-{part}.arrow"

    def report(self, instance: int) -> str:
        return f"{self._stem(instance)}.json"

    def _stem(self, instance: int) -> str:
        return f"b{self.batch:012d}-o{self.operator}-{self.attempt}-i{instance:05d}"


def batch_of(name: str) -> int:
    """The batch that a file name of this module belongs to.

    >>> batch_of(BatchNames(7, 0, "a").report(3))
    7
    """
    return int(name[1:13])
