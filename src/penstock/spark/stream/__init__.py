"""Streams in Spark: reading, writing and their progress."""
