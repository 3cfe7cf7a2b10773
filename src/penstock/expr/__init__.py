"""Predicates: the tree, its text, its binding to a schema, its normal form and its exact meaning over Arrow."""
