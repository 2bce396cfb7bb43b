"""What the load shedding paper says of its figures (§6), to stand beside ours.

It prints its figures as plots and names only these gains in its text.
"""

# Rate adaptation ÷ random drop without a lag, by tuples per second (Fig. 4).
RATE_GAIN = {500: 2.0, 300: 1.5}
# With a lag of 5/8 χ, while the rates are raised (Fig. 7).
TIME_GAIN = 1.5  # time correlation ÷ rate adaptation alone
DIRECTION_GAIN = 1.4  # join direction ÷ without it
