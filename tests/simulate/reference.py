"""A tiny simulation that works off events one by one, to check the fast one against."""

import heapq
from dataclasses import dataclass, field

from skewless.simulate.costs import Costs
from skewless.simulate.streams import LEFT, Arrivals


@dataclass
class Instance:
    """A queue, a server, and rows with the time they were sent."""

    queue: list[int] = field(default_factory=list)
    busy: bool = False
    rows: list[tuple[float, int, int]] = field(default_factory=list)


def latencies(
    arrivals: Arrivals,
    partition_of: list[int],
    owner: list[int],
    instances: int,
    costs: Costs,
    window_s: float,
) -> list[float]:
    """The time every tuple is in the system, for plain routing; state starts empty."""
    cluster = [Instance() for _ in range(instances)]
    done = [0.0] * len(arrivals.key)
    events = [(float(t), 0, i) for i, t in enumerate(arrivals.time_s)]
    heapq.heapify(events)

    def start(instance: Instance, now_s: float) -> None:
        i = instance.queue.pop(0)
        instance.busy = True
        key, sent_s = int(arrivals.key[i]), float(arrivals.time_s[i])
        cost = costs.tuple_s
        if arrivals.side[i] == LEFT:
            live = [row for row in instance.rows if row[0] >= sent_s - window_s]
            same = sum(k == key for _, k, _ in live)
            near = sum(p == partition_of[key] for _, _, p in live)
            cost += costs.compare_s * (len(live) if costs.scope == "instance" else near)
            cost += costs.match_s * same
        else:
            instance.rows.append((sent_s, key, partition_of[key]))
        heapq.heappush(events, (now_s + cost, 1, i))

    while events:
        now_s, kind, i = heapq.heappop(events)
        instance = cluster[owner[partition_of[int(arrivals.key[i])]]]
        if kind == 0:
            instance.queue.append(i)
        else:
            done[i] = now_s - float(arrivals.time_s[i])
            instance.busy = False
        if not instance.busy and instance.queue:
            start(instance, now_s)
    return done
