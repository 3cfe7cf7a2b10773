"""Streams: what has come since a position, pruned at the moment it is found. No Spark in it."""
