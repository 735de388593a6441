"""torchvitals: see what your training is doing, while it does it."""

__version__ = "0.1.0"
