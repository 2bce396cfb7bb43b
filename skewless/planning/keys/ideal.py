"""The ideal that no policy with keys can pass: a shuffle, which gives every instance the mean."""

import numpy as np

from skewless.planning.keys.snapshot import Floats, KeySnapshot


def ideal_loads(snapshot: KeySnapshot) -> Floats:
    """What every instance would have if rows went anywhere, whatever their key."""
    return np.full(snapshot.instances, snapshot.mean)
