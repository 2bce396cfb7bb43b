"""How much of the windows a join probes when it cannot keep up, and which part."""
