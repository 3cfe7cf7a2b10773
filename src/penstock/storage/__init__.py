"""Storage: a URI becomes a file system, a listing and the options of other readers."""
