"""Pruning: what is known of containers, and the verdicts that follow from it."""
