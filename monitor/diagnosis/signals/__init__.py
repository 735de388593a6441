"""What several detectors measure in the same way: steps, waits, stacks, memory, ranks, devices."""
