"""Streaming reads of Iceberg tables: what each snapshot added."""
