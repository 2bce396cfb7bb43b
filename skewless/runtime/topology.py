"""The operators of a query and how rows flow between them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.engine.operator import Operator
from skewless.runtime.dispatch import quoted

Transform = Callable[[DataFrame], DataFrame]
# The columns of several inputs in one stream: which input a row is of, and the row.
_INPUT = "input"
_APPEND = ("append",)


@dataclass(frozen=True)
class Source:
    """A streaming DataFrame; its rows are as the operator above takes them."""

    frame: DataFrame


@dataclass(frozen=True)
class Table:
    """A DataFrame that does not stream; an operator reads it in the first batch of a query."""

    frame: DataFrame


class StoredTable(Protocol):
    """A table of which an operator keeps a copy: what reads it, as often as it is to be read."""

    def read(self, session: SparkSession) -> DataFrame:
        """The rows of the table as of now, in the operator's columns."""
        ...


@dataclass(frozen=True)
class Node:
    """An operator, what it reads, and ordinary code on its result."""

    operator: Operator
    children: tuple["Source | Node | Table", ...]
    rows: Callable[..., DataFrame]  # the children's rows as one frame of the operator's columns
    schema: T.StructType  # of what its tasks give
    transforms: tuple[Transform, ...] = ()
    # Sides whose progress in event time is that of the child of this number.
    timed_by: Mapping[str, int] = field(default_factory=dict)
    # Whether rows of a split key visit all its instances.
    replicates: bool = False
    # Per side of the operator: the columns of the rows that its tasks may drop.
    inputs: Mapping[str, T.StructType] = field(default_factory=dict)
    # The same node with all columns of its input on their way, where it leaves out some.
    whole: "Callable[[], Node] | None" = None
    # Whether event time of the first child goes through unchanged: a map neither delays rows nor
    # waits for any.
    keeps_time: bool = False
    # The table that its operator loads.
    table: StoredTable | None = None

    @property
    def gives_watermark(self) -> bool:
        """Whether the result can ever have one: by its operator, and by those that feed it."""
        fed = (self.children[number] for number in self.timed_by.values())
        times = (child.timing for child in fed if isinstance(child, Node))
        return self.operator.gives_watermark and all(
            timing is None or timing.gives_watermark for timing in times
        )

    @property
    def comes_in_parts(self) -> bool:
        """Whether some of its result is known before the rest, and nothing needs both at once."""
        return self.operator.emits and not self.operator.waits and not self.transforms

    @property
    def modes(self) -> tuple[str, ...]:
        """The output modes to choose from: what goes into a map comes out of it."""
        own: tuple[str, ...] | None = getattr(self.operator, "modes", None)
        passed = self._passed_on
        return own or (_APPEND if passed is None else passed.modes)

    def in_mode(self, mode: str) -> "Node":
        """The same in another output mode."""
        if hasattr(self.operator, "in_mode"):
            return replace(self, operator=self.operator.in_mode(mode))
        passed = self._passed_on
        if passed is None:
            return self
        return replace(self, children=(passed.in_mode(mode), *self.children[1:]))

    @property
    def appends(self) -> bool:
        """Whether the result can be appended to: an aggregate that never closes gives updates."""
        passed = self._passed_on
        return bool(getattr(self.operator, "appends", passed is None or passed.appends))

    @property
    def _passed_on(self) -> "Node | None":
        """The operator whose rows go through a map."""
        child = self.children[0]
        return child if self.keeps_time and isinstance(child, Node) else None

    @property
    def timing(self) -> "Node | None":
        """The upstream operator whose watermark the output inherits; None: its rows tell."""
        if not self.keeps_time:
            return self
        child = self.children[0]
        return child.timing if isinstance(child, Node) else None


def only(frame: DataFrame) -> DataFrame:
    """The rows of a single child, which are the operator's columns already."""
    return frame


def with_whole_rows(last: Node) -> Node:
    """The same operators, to which every row comes with all columns of its input."""
    return _changed(last, lambda node: node if node.whole is None else node.whole())


def triggered(last: Node, interval_us: int | None) -> Node:
    """The same operators in a query whose trigger has this interval, if any."""
    return _changed(last, lambda node: replace(node, operator=node.operator.triggered(interval_us)))


def _changed(last: Node, change: Callable[[Node], Node]) -> Node:
    """All operators changed, each with the changed ones that feed it and the code on its result."""
    made: dict[int, Node] = {}  # a stream that is read twice is still one operator

    def changed(node: Node) -> Node:
        if id(node) not in made:
            other = change(node)
            children = tuple(
                changed(old) if isinstance(old, Node) else new
                for old, new in zip(node.children, other.children, strict=True)
            )
            made[id(node)] = replace(other, children=children, transforms=node.transforms)
        return made[id(node)]

    return changed(last)


@dataclass(frozen=True)
class Topology:
    """All operators under the last one, each after those that it reads."""

    nodes: tuple[Node, ...]
    sources: tuple[Source, ...]

    @staticmethod
    def of(last: Node) -> "Topology":
        # A stream may be read twice; it is still one operator.
        nodes = tuple({id(node): node for node in _below(last)}.values())
        sources = [c for node in nodes for c in node.children if isinstance(c, Source)]
        return Topology(nodes, tuple({id(s): s for s in sources}.values()))

    def number(self, node: Node) -> int:
        return next(i for i, n in enumerate(self.nodes) if n is node)

    @property
    def operators(self) -> tuple[Operator, ...]:
        return tuple(node.operator for node in self.nodes)

    @property
    def upstream(self) -> tuple[dict[str, int], ...]:
        """For every operator: side → the operator that its progress in event time comes from."""
        return tuple(
            {side: self._timing(node.children[c]) for side, c in node.timed_by.items()}
            for node in self.nodes
        )

    def _timing(self, child: "Source | Node | Table") -> int:
        timing = child.timing if isinstance(child, Node) else None
        assert timing is not None, "a source tells its progress by its rows"
        return self.number(timing)

    def stream(self) -> DataFrame:
        """One streaming DataFrame of all inputs: one query, one checkpoint, one offset log."""
        if len(self.sources) == 1:
            return self.sources[0].frame
        tagged = [self._tagged(number) for number in range(len(self.sources))]
        stream = tagged[0]
        for other in tagged[1:]:
            stream = stream.unionByName(other)
        return stream

    def input(self, batch: DataFrame, source: Source) -> DataFrame:
        """The rows of one input, of a micro-batch of `stream`."""
        if len(self.sources) == 1:
            return batch
        number = next(i for i, s in enumerate(self.sources) if s is source)
        return batch.where(F.col(_INPUT) == number).select(f"{_row(number)}.*")

    def _tagged(self, number: int) -> DataFrame:
        columns = [F.lit(number).alias(_INPUT)]
        for other, source in enumerate(self.sources):
            frame = source.frame
            row = F.struct(*(quoted(c) for c in frame.columns))
            column = row if other == number else F.lit(None).cast(frame.schema)
            columns.append(column.alias(_row(other)))
        return self.sources[number].frame.select(*columns)


def _row(number: int) -> str:
    return f"row{number}"


def _below(node: Node) -> Iterator[Node]:
    for child in node.children:
        if isinstance(child, Node):
            yield from _below(child)
    yield node
