"""Time lost outside the model."""
