"""Parquet trees that become Iceberg tables where they lie."""
