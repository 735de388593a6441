"""Compiled graphs and kernels."""
