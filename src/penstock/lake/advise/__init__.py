"""Advice on the layout of a table, from its metadata and a sample."""
