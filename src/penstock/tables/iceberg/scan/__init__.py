"""Scans: which files a query needs, their deletes, and reading them without Spark."""
