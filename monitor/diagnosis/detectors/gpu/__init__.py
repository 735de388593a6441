"""The devices themselves."""
