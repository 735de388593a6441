"""Script: which code trains, so that two runs can be told apart by it. Only a digest leaves the process."""

from __future__ import annotations

import hashlib
import os
import sys

#: A file longer than this is no script.
MOST_BYTES = 4_000_000


def script_facts() -> dict[str, str] | None:
    """Name of the main script's file and a digest of its text; None where there is no such file.

    Read once, as the run begins: an edit made while it trains belongs to the next run.
    """
    path = sys.argv[0] if sys.argv else ""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MOST_BYTES:
            return None
        with open(path, "rb") as file:
            text = file.read()
    except (OSError, ValueError):
        return None
    return {"name": os.path.basename(path), "digest": hashlib.sha256(text).hexdigest()[:16]}
