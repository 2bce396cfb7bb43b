"""The figures that the POSG paper prints in its evaluation (§V), to stand beside ours."""

# Mean speed-up over round robin by Zipf exponent (Fig. 4; 0 is uniform).
SKEW_SPEED_UP = {0.0: 1.06, 0.5: 1.06, 1.0: 1.25}
# Mean speed-up by over-provisioning (Fig. 5); from 1.00 to 1.09 it is at least 1.15.
LOAD_SPEED_UP = {1.02: 1.26, 1.15: 1.07}
# Mean speed-up over all values of the axis (Fig. 6 and 7).
LONGEST_SPEED_UP = 1.19
VALUES_SPEED_UP = 1.19
# Speed-up with a single instance (Fig. 8).
ONE_INSTANCE = 1.0
# Time series (Fig. 10, simulated, and Fig. 11, on Storm): RUN from this tuple on; after the change
# at 75,000 new matrices came in at this one.
RUN_FROM = (10_690, 20_978)
RECOVERED_AT = (84_912, 82_311)
# Tweets (Fig. 12): mean speed-up, the one with ten instances, and messages in 500,000 tuples.
TWEETS_SPEED_UP = 1.37
TWEETS_TEN = 1.16
TWEETS_MESSAGES = 916
