"""Going wrong."""
