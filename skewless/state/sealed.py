"""Small JSON files that carry a checksum of themselves, so that damage cannot pass for data."""

import json
import re
import zlib
from typing import Any

_KEY = "crc32"
# The seal ends the file: all bytes before it are summed up, and its own can only be these.
_SEAL = re.compile(rb',"crc32":"([0-9a-f]{8})"\}\Z')
_SEAL_BYTES = len(',"crc32":"00000000"}')


class DamagedError(ValueError):
    """The content is not what was written."""


class UnsealedError(DamagedError):
    """The content has no checksum at all."""


def seal(record: dict[str, Any]) -> bytes:
    """A record that is not empty as JSON, with its checksum as the last field."""
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return body + b',"%s":"%08x"}' % (_KEY.encode(), zlib.crc32(body))


def unseal(content: bytes) -> dict[str, Any]:
    """The record that was sealed.

    >>> unseal(seal({"rows": 7}))
    {'rows': 7}
    >>> unseal(seal({"rows": 7}).replace(b"7", b"8"))
    Traceback (most recent call last):
    skewless.state.sealed.DamagedError: its checksum is wrong
    """
    found = _SEAL.search(content, max(0, len(content) - _SEAL_BYTES))
    if found is None:
        raise UnsealedError("its checksum is missing")
    if zlib.crc32(memoryview(content)[: found.start()]) != int(found[1], 16):
        raise DamagedError("its checksum is wrong")
    record: dict[str, Any] = json.loads(content)
    del record[_KEY]
    return record
