"""The `penstock` command: what people type, and what they see for it."""
