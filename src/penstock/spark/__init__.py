"""The native scan: Spark's own Parquet reader over the files that Penstock chose."""
