"""Points of a stream, reported to those who have subscribed to a part of the map."""
