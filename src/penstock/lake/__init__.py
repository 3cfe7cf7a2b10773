"""Managed tables: Iceberg tables that Penstock writes, with logical partitions that share files."""
