"""Runs that went wrong."""
