"""A stream that is joined with a table: every row of the stream meets a stored copy of it."""
