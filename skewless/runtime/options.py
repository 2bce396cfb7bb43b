"""The options of a writer: those of Skewless, and those that belong to the format."""

from dataclasses import dataclass
from typing import Any

from skewless.errors import bad_argument
from skewless.state.faults import Faults

_BAD_ROWS = ("fail", "drop")


@dataclass(frozen=True)
class OwnOptions:
    """The options of Skewless; None: not set."""

    checkpoint_location: str | None
    path: str | None
    bad_rows: str | None
    dead_letter_path: str | None
    state_location: str | None
    faults: str | None

    @property
    def drops_bad_rows(self) -> bool:
        return self.bad_rows == "drop"

    def check(self) -> None:
        """Refuses what is set and cannot be taken."""
        if self.bad_rows not in (None, *_BAD_ROWS):
            raise bad_argument("badRows", self.bad_rows, "'fail' or 'drop'")

    def planned_faults(self) -> Faults:
        return Faults.parse(self.faults or "[]")


# By the field of `OwnOptions` that holds it.
_OWN = {
    "checkpoint_location": "checkpointlocation",
    "path": "path",
    "bad_rows": "badrows",
    "dead_letter_path": "deadletterpath",
    "state_location": "statelocation",
    "faults": "skewless.faults",
}


class WriterOptions:
    """Options by their names, which are case-insensitive as in Spark.

    >>> options = WriterOptions()
    >>> options.put("Path", "/out")
    >>> options.put("header", True)
    >>> options.own().path, options.of_format()
    ('/out', {'header': 'true'})
    """

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, str]] = {}  # as it was written, and its value

    def put(self, key: str, value: Any) -> None:
        """Sets an option; None takes it back."""
        self._values.pop(key.lower(), None)
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            self._values[key.lower()] = (key, text)

    def own(self) -> OwnOptions:
        """The options that are ours."""
        return OwnOptions(**{field: self._own(name) for field, name in _OWN.items()})

    def of_format(self) -> dict[str, str]:
        """The rest, which belongs to the format."""
        ours = _OWN.values()
        return {key: value for name, (key, value) in self._values.items() if name not in ours}

    def _own(self, name: str) -> str | None:
        key, value = self._values.get(name, (name, None))
        if value == "":
            raise bad_argument(key, "", "text that is not empty")
        return value
