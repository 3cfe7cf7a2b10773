"""Pages for people: what a table looks like, what a query reads of it, and why. It needs no Spark and writes nothing."""
