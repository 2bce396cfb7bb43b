"""How partitions are chosen that move: Auto's search, Ls-Stream's annealing, and keys to split."""
