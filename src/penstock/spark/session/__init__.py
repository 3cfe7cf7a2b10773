"""Spark sessions: starting, attaching, the Java classes, SQL over a lake."""
