"""Rows that are found by several hashes, each of which has its own way: the postings of a row."""

import numpy as np

from skewless.routing.route import Hashes, Instances, Route, Side, Visits, scaled


def row_visits(
    route: Route, side: Side, owner: Instances, hashes: Hashes, spread: Hashes
) -> Visits:
    """The instances that rows are sent to, each once, whatever number of their postings go there.

    `owner` is the row of every posting and rises. The visit to the home of a row's first posting is
    marked as `home`: the row is counted there. A row without postings goes where its `spread` value
    says. `skewless.runtime.routing.set_visits` does the same in SQL.
    """
    rows = len(spread)
    row_home = scaled(spread, np.full(rows, route.instances, np.int64))
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    counted = route.homes(side, hashes[first], spread[owner[first]])
    row_home[owner[first]] = counted
    visits = route.visits(side, hashes, spread[owner])
    row = np.concatenate([np.arange(rows), owner[visits.row]])
    instance = np.concatenate([row_home, visits.instance])
    once = np.unique(row * route.instances + instance)
    row, instance = once // route.instances, once % route.instances
    return Visits(row, instance, instance == row_home[row])
