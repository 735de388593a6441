"""The version, which the page and the store show too."""

__version__ = "0.1.0"
