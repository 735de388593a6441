"""One pitfall a file."""
