"""Map shredding: hot keys of a map in columns of their own, and back."""
