"""What shows the product: benchmarks, the papers' experiments, the demo, and their data."""
