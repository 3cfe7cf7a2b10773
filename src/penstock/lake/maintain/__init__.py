"""Maintenance: compaction, expiry of snapshots, removal of unreferenced files."""
