"""The identity of a checkpoint: a random name that it keeps wherever it is moved."""

import uuid

from skewless.state.commit import CheckpointError
from skewless.state.sealed import DamagedError, seal, unseal
from skewless.state.storage import MissingFileError, Storage

_NAME = "identity.json"
_KEY = "checkpoint"


def identity_of(storage: Storage) -> str | None:
    """The identity of a state directory; None where it has none yet."""
    try:
        return str(unseal(storage.read_bytes(_NAME))[_KEY])
    except MissingFileError:
        return None
    except DamagedError as failure:
        raise CheckpointError(
            f"{storage.path(_NAME)}: the identity of the checkpoint cannot be read ({failure}); "
            "restore the file from a backup, or delete it and the file _skewless in the folder of "
            "the results"
        ) from failure


def identify(storage: Storage) -> str:
    """The identity of a state directory, which is given one if it has none yet."""
    identity = identity_of(storage)
    if identity is None:
        identity = uuid.uuid4().hex
        storage.write_bytes(_NAME, seal({_KEY: identity}))
    return identity
