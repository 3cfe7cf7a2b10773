"""The native scan: Spark's own reader over the files that Penstock planned."""
