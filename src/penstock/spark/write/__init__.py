"""Writing with Spark, and the `penstock` data source."""
