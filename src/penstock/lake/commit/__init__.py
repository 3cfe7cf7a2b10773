"""Data files become a snapshot."""
