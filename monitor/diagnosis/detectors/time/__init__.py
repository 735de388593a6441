"""Time lost elsewhere."""
