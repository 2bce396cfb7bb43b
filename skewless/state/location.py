"""What folder a location names: one reading of it, which is that of Spark.

Hadoop takes every character after the scheme and the host as it is: `%20` is three characters of a
name, not a space. pyarrow decodes a URI, so it is given one that decodes to the same name.
"""

import os
import re
from urllib.parse import quote

from pyarrow import fs

from skewless.errors import bad_argument

# A single letter before the colon is the name of a file, as in "a:b".
_URI = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):(//[^/?#]*)?(.*)", re.DOTALL)
_LOCAL = "file"
# Spark's names for S3; pyarrow has one.
_PYARROW_SCHEMES = {"s3a": "s3", "s3n": "s3"}


def open_location(location: str) -> tuple[fs.FileSystem, str]:
    """The filesystem of a location and the path in it. Raises a ValueError or an OSError.

    What follows a `?` are pyarrow's options of the filesystem (`s3://bucket/state?region=…`).
    """
    local = _local_path(location)
    if local is not None:
        return fs.LocalFileSystem(), local.rstrip("/")
    scheme, host, rest = _URI.fullmatch(location).groups("")  # type: ignore[union-attr]
    path, mark, options = rest.partition("?")
    scheme = _PYARROW_SCHEMES.get(scheme, scheme)
    filesystem, opened = fs.FileSystem.from_uri(f"{scheme}:{host}{quote(path)}{mark}{options}")
    return filesystem, opened.rstrip("/")


def absolute_location(location: str) -> str:
    """The same folder for processes that work in another one.

    >>> absolute_location("file:///data//out/../checkpoint/")
    'file:///data/checkpoint'
    """
    local = _local_path(location)
    if local is None:
        return location
    return f"{_LOCAL}://{local}" if _URI.fullmatch(location) else local


def check_shared(option: str, location: str) -> None:
    """Refuses a location that Spark and pyarrow cannot both read as the same folder."""
    try:
        is_local = _local_path(location) is not None
    except ValueError as failure:
        raise bad_argument(option, location, str(failure)) from None
    if not is_local and re.search(r"[?#]", location):
        takes = "a URI without '?' and '#': Spark takes them as part of a name, pyarrow does not"
        raise bad_argument(option, location, takes)


def _local_path(location: str) -> str | None:
    """The absolute path of a folder on a local disk, None where it is elsewhere."""
    if "\0" in location:
        raise ValueError("a path without NUL characters")
    uri = _URI.fullmatch(location)
    if uri is None:
        path = os.path.abspath(location)
    elif uri[1] != _LOCAL:
        return None
    elif uri[2] not in (None, "//") or not uri[3].startswith("/"):
        raise ValueError("a URI of a local folder that begins with file:/// and names no host")
    else:
        path = os.path.normpath(uri[3])
    # Two leading slashes survive in Python; Hadoop would read a host after them.
    return "/" + path.lstrip("/")
