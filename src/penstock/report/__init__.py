"""Pages for people: what a table looks like, what a query reads of it, and why. They need no Spark."""
