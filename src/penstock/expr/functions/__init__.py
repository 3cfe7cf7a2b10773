"""The functions of SQL: one entry each with names, types, kernel and the law that carries bounds through it."""
