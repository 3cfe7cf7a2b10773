"""Iceberg tables: snapshots, manifests and what they say of each file."""
