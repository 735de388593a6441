"""Memory of host and device."""
