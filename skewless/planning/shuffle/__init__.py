"""Which instance a row of a stateless operator goes to: greedy rules, online and per batch."""
