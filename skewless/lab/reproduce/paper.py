"""The figures that the Ls-Stream paper prints in its evaluation, to stand beside ours."""

# Maximum throughput in tuples/s, by system and Zipf coefficient (§VI-B).
ZIPF_THROUGHPUT = {
    ("BiStream", 0.2): 29_500.0,
    ("BiStream", 1.0): 11_000.0,
    ("ContRand", 0.2): 28_500.0,
    ("ContRand", 1.0): 14_500.0,
}
# How much lower the largest latency over all coefficients is with Ls-Stream (§VI-B).
ZIPF_LATENCY_CUT = {"BiStream": 0.493, "ContRand": 0.392, "FastJoin": 0.181}
# Load imbalance degree of plain hashing, by Zipf coefficient (§VI-D).
HASH_IMBALANCE = {0.4: 1.5, 0.8: 5.3}
# Ride-hailing, 28 instances: maximum throughput by system and number of nodes (§VI-C).
NODES_THROUGHPUT = {
    ("BiStream", 6): 9_500.0,
    ("BiStream", 14): 15_500.0,
    ("ContRand", 6): 11_500.0,
    ("ContRand", 14): 19_500.0,
    ("FastJoin", 6): 13_000.0,
    ("FastJoin", 14): 21_500.0,
    ("LsStream", 6): 15_000.0,
    ("LsStream", 14): 25_500.0,
}
# Ride-hailing: mean latency in milliseconds at 4,500 tuples/s (§VI-C).
RIDE_LATENCY_MS = {"BiStream": 10.3, "ContRand": 8.5, "FastJoin": 7.2, "LsStream": 5.4}
# Ride-hailing, fewer than 48 instances: Ls-Stream's throughput beside the others', at least.
INSTANCES_GAIN = {"BiStream": 1.52, "ContRand": 1.27, "FastJoin": 1.06}
# Ride-hailing at 3,000 tuples/s, over the numbers of instances: Ls-Stream's latency is lower by.
INSTANCES_LATENCY_CUT = {"BiStream": 0.358, "ContRand": 0.238, "FastJoin": 0.18}
