"""What several detectors measure in the same way: steady steps, waits, stacks, memory, ranks."""
