"""Tables that a metastore knows: their columns, their partitions, and where each of these lies."""
