"""Starts a query in its checkpoint: folders, locks, the engine, and Spark's own query."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skewless.engine.engine import Engine
from skewless.errors import SkewlessError
from skewless.runtime.claim import Claim
from skewless.runtime.deadletters import DeadLetters
from skewless.runtime.folders import placed
from skewless.runtime.history import History, discard, temporary_checkpoint
from skewless.runtime.options import OwnOptions
from skewless.runtime.query import Query
from skewless.runtime.refusals import refuse_foreign_progress, refuse_nested_folders
from skewless.runtime.sinks import FileSink, MemorySink, Sink
from skewless.runtime.step import Step
from skewless.runtime.tables import TableSink
from skewless.runtime.topology import Topology
from skewless.state.commit import CommitLog
from skewless.state.lock import DirectoryLock
from skewless.state.storage import StateError, Storage

if TYPE_CHECKING:
    from skewless.runtime.stream import Stream

_STATE_FOLDER = "skewless"


@dataclass(frozen=True)
class Launch:
    """All that a query is started from."""

    stream: "Stream"
    topology: Topology
    sink: Sink
    own: OwnOptions
    trigger: dict[str, Any]
    query_name: str | None

    def start(self, checkpoint: str | None) -> Query:
        """The running query; None: in a temporary checkpoint, which goes with the query."""
        if checkpoint is not None:
            return self._start(checkpoint, None)
        temporary = temporary_checkpoint()
        try:
            return self._start(temporary, temporary)
        except BaseException:
            discard(temporary)
            raise

    def _start(self, location: str, temporary: str | None) -> Query:
        stream, sink, own = self.stream, self.sink, self.own
        checkpoint = placed("checkpointLocation", location, stream.session)
        state = own.state_location or f"{checkpoint.rstrip('/')}/{_STATE_FOLDER}"
        storage = Storage(state).absolute()
        dead_letter_path = self._dead_letter_path(checkpoint, state)
        refuse_foreign_progress(checkpoint, storage)
        claims = [
            Claim(option, folder, checkpoint, storage)
            for option, folder in (
                ("path", sink.path if isinstance(sink, FileSink) else None),
                ("deadLetterPath", dead_letter_path),
            )
            if folder is not None
        ]
        for claim in claims:
            claim.check()
        engine = Engine(
            storage=storage,
            operators=self.topology.operators,
            upstream=self.topology.upstream,
            cores=stream.cores(),
            drop_bad_rows=own.drops_bad_rows,
            keep_dropped=dead_letter_path is not None,
            faults=own.planned_faults(),
        )
        try:
            storage.make_directory("")
        except StateError as failure:
            option = "stateLocation" if own.state_location else "checkpointLocation"
            raise SkewlessError(f"{option}: {failure}") from failure
        lock = DirectoryLock(storage, self.query_name or "unnamed")
        try:
            engine.open()
            for claim in claims:
                claim.hold()
            if isinstance(sink, TableSink):
                sink = sink.opened(stream.session, storage)
            letters = None
            if dead_letter_path is not None:
                letters = DeadLetters(dead_letter_path, storage, self.topology, engine.cores)
            step = Step(engine, sink, self.topology, letters)
            query = self._sparks_query(step, checkpoint)
            if any(operator.sheds for operator in self.topology.operators):
                step.query = query  # of no effect with Spark Connect, where the step is a copy
        except BaseException:
            lock.release()
            raise
        if isinstance(sink, MemorySink):
            sink.publish()  # not before: the view of another query may have the name
        return Query(query, History(CommitLog(storage), temporary), lock)

    def _dead_letter_path(self, checkpoint: str, state: str) -> str | None:
        """The folder of late and bad rows; none of the query's folders may be within another."""
        folders = {"checkpointLocation": checkpoint, "stateLocation": state}
        if isinstance(self.sink, FileSink):
            refuse_nested_folders("path", self.sink.path, folders)
            folders["path"] = self.sink.path
        if self.own.dead_letter_path is None:
            return None
        path = placed("deadLetterPath", self.own.dead_letter_path, self.stream.session)
        refuse_nested_folders("deadLetterPath", path, folders)
        return path

    def _sparks_query(self, step: Step, checkpoint: str) -> Any:
        writer = self.topology.stream().writeStream.foreachBatch(step)
        writer = writer.option("checkpointLocation", checkpoint)
        if self.trigger:
            writer = writer.trigger(**self.trigger)
        if self.query_name:
            writer = writer.queryName(self.query_name)
        return writer.start()
