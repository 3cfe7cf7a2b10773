"""Table metadata: catalogs, schemas, partition specs and snapshots."""
