"""Where the rows of a managed table lie: specs, the coalescing rule, slots."""
