"""Folders in memory, for tests that make hundreds of small files that nobody needs on a disk."""

from __future__ import annotations

import os
import tempfile

_MEMORY = "/dev/shm"


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder in memory where the system has such a place, else where such folders go."""
    return tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
