"""Pure functions from a window of a run to findings. numpy and the standard library only."""
