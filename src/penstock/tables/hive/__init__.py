"""Hive-style directories: `root/key=value/key=value/file.parquet`."""
