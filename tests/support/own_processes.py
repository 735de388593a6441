"""Finds the agents and hubs that a test has started, by the state folder that they were given."""

from __future__ import annotations

from pathlib import Path


def processes_of(state: Path) -> dict[str, int]:
    """Pids of agent and hub, by the state folder that they were given."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(str(state) in word for word in words):
            found.update({name: int(entry.name) for name in ("agent", "serve") if name in words})
    return found
