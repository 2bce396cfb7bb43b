"""What a user calls; each operator turns its options into tasks and their bookkeeping."""
