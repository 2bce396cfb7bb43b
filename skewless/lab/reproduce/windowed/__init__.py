"""A windowed join of two streams, tuple by tuple, on a CPU that cannot keep up."""
