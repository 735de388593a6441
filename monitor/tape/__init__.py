"""The memory-mapped ring and the event journal between a training process and its agent."""
