"""What runs inside the training process: hooks, clock, facts."""
