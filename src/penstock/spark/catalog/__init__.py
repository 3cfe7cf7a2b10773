"""A lake as a catalog of Spark's: what `LakeCatalog.java` asks for is answered here."""
