"""Graphs and kernels."""
