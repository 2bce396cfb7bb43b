"""The state directory on any filesystem that pyarrow.fs knows, with atomic publication of files."""

import contextlib
import errno
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import pyarrow as pa
from pyarrow import fs

from skewless.errors import SkewlessError
from skewless.state.location import absolute_location, open_location

_Result = TypeVar("_Result")
# Requests to an object store that are under way at a time.
_REQUESTS_AT_ONCE = 32
TEMPORARY = ".tmp-"  # follows the name of a file while it is written


class StateError(SkewlessError):
    """The state directory cannot be read or written; the message names the file."""


@dataclass(frozen=True)
class Storage:
    """A directory given by a URI or a local path. Picklable: workers open it for themselves."""

    uri: str

    @cached_property
    def _opened(self) -> tuple[fs.FileSystem, str]:
        try:
            return open_location(self.uri)
        except (pa.ArrowInvalid, OSError, ValueError) as failure:
            raise StateError(
                f"state directory {self.uri!r}: pyarrow.fs cannot open it ({failure}); use a local "
                "path, or a URI whose filesystem pyarrow knows (file, hdfs, s3, gs, abfs); the "
                "option stateLocation may name another place than checkpointLocation"
            ) from failure

    def __getstate__(self) -> dict[str, str]:
        return {"uri": self.uri}

    def absolute(self) -> "Storage":
        """The same place for processes that work in another folder."""
        try:
            return Storage(absolute_location(self.uri))
        except ValueError:
            return self  # opening it says what is wrong

    @property
    def is_local(self) -> bool:
        return isinstance(self._opened[0], fs.LocalFileSystem)

    def path(self, name: str) -> str:
        """The full path of a file of this directory, as messages show it."""
        return f"{self._opened[1]}/{name}"

    def make_directory(self, name: str) -> None:
        with self._naming(name, "create"):
            self._opened[0].create_dir(self.path(name), recursive=True)

    def write(self, name: str, writer: Callable[[pa.NativeFile], None]) -> None:
        """Publishes a file whole or not at all; a file of that name is replaced."""
        filesystem = self._opened[0]
        final = self.path(name)
        with self._naming(name, "write"):
            if not isinstance(filesystem, fs.LocalFileSystem | fs.HadoopFileSystem):
                # An object store has no rename. It shows an object only once its upload is
                # complete, but closing the stream completes it: so no writer fails inside one.
                content = pa.BufferOutputStream()
                writer(content)
                with filesystem.open_output_stream(final) as out:
                    out.write(content.getvalue())
                return
            temporary = f"{final}{TEMPORARY}{uuid.uuid4().hex}"
            try:
                with filesystem.open_output_stream(temporary) as out:
                    writer(out)
                if isinstance(filesystem, fs.HadoopFileSystem) and self.exists(name):
                    filesystem.delete_file(final)  # HDFS renames onto nothing only
                filesystem.move(temporary, final)
            except BaseException:
                with contextlib.suppress(OSError):
                    filesystem.delete_file(temporary)
                raise

    def write_bytes(self, name: str, content: bytes) -> None:
        self.write(name, lambda out: out.write(content))

    def read_bytes(self, name: str) -> bytes:
        with self._naming(name, "read"), self._opened[0].open_input_stream(self.path(name)) as file:
            content: bytes = file.read()
            return content

    def read_all(self, names: Sequence[str]) -> Sequence[bytes]:
        """Several files at once; where each is a round trip, they are read side by side."""
        return self._each(self.read_bytes, names)

    def read_mapped(self, name: str) -> pa.Buffer:
        """A whole file: memory-mapped when local, read otherwise."""
        with self._naming(name, "read"):
            if self.is_local:
                return pa.memory_map(self.path(name), "r").read_buffer()
            with self._opened[0].open_input_file(self.path(name)) as file:
                return file.read_buffer()

    def modified_ns(self, name: str) -> int:
        """When a file was last written, as far as the filesystem tells."""
        with self._naming(name, "read"):
            info = self._opened[0].get_file_info(self.path(name))
        return int(info.mtime_ns or 0)

    def exists(self, name: str) -> bool:
        with self._naming(name, "read"):
            info = self._opened[0].get_file_info(self.path(name))
        return bool(info.type != fs.FileType.NotFound)

    def list(self, directory: str) -> list[str]:
        """The names of the files in a directory; none where the directory is missing."""
        return sorted(self._names(directory, fs.FileType.File))

    def folders(self, directory: str) -> set[str]:
        """The names of the folders in a directory; none where the directory is missing."""
        return self._names(directory, fs.FileType.Directory)

    def _names(self, directory: str, kind: fs.FileType) -> set[str]:
        selector = fs.FileSelector(self.path(directory).rstrip("/"), allow_not_found=True)
        with self._naming(directory, "list"):
            infos = self._opened[0].get_file_info(selector)
        return {i.base_name for i in infos if i.type == kind}

    def delete(self, name: str) -> None:
        """Removes a file; one that is gone already is fine."""
        with contextlib.suppress(FileNotFoundError), self._naming(name, "delete"):
            self._opened[0].delete_file(self.path(name))

    def delete_all(self, names: Sequence[str]) -> None:
        """Removes several files at once; those that are gone already are fine."""
        self._each(self.delete, names)

    def delete_folder(self, name: str) -> None:
        """Removes a folder and all that is in it, in one request where the filesystem has one.

        What somebody still reads may stay for a while: NFS keeps such files under another name.
        """
        with contextlib.suppress(FileNotFoundError), self._naming(name, "delete"):
            try:
                self._opened[0].delete_dir(self.path(name))
            except OSError as failure:
                if failure.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
                    raise

    def _each(self, do: Callable[[str], _Result], names: Sequence[str]) -> Sequence[_Result]:
        if self.is_local or len(names) < 2:
            return [do(name) for name in names]
        with ThreadPoolExecutor(min(len(names), _REQUESTS_AT_ONCE)) as pool:
            return tuple(pool.map(do, names))

    @contextlib.contextmanager
    def _naming(self, name: str, verb: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as failure:
            if verb == "create":
                raise StateError(f"{self.path(name)}: cannot create it ({failure})") from failure
            raise MissingFileError(f"{self.path(name)}: the file is missing ({verb})") from failure
        except OSError as failure:
            advice = _ADVICE.get(failure.errno or 0, "")
            raise StateError(
                f"{self.path(name)}: cannot {verb} ({failure.strerror or failure}){advice}"
            ) from failure


class MissingFileError(StateError, FileNotFoundError):
    """A file of the state directory is not there."""


_ADVICE = {
    errno.ENOSPC: "; the disk is full: free some space and start the query again, "
    "nothing of this batch was committed",
    errno.EROFS: "; the filesystem is read-only: choose another checkpointLocation",
    errno.EACCES: "; give this user write access or choose another checkpointLocation",
    errno.EPERM: "; give this user write access or choose another checkpointLocation",
}
