"""Manifests: decoded as columns, cached, and turned into facts about files."""
