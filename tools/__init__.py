"""Scripts that keep the project honest; nothing here is installed with the package."""
