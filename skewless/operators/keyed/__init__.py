"""Work per key: windowed aggregates, self-joins and user functions with state."""
