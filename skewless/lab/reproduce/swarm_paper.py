"""What the SWARM paper says of its results (§6), to stand beside ours.

It prints them as plots and names only these in its text.
"""

WORK_GAIN = 3.0  # units of work, SWARM ÷ history grid, mean over the numbers of subscriptions
LATENCY_GAIN = 4.0  # execution latency, history grid ÷ SWARM, mean
REPLICATED_MOST = 16_000_000  # subscriptions; it runs out of memory beyond
