"""Liveness: whether a run whose store says "running" does, when nobody recorded its end."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: A run on another machine that has sent nothing for so long counts as lost.
SILENCE_S = 60.0


def lost(
    meta: Mapping[str, Any], hosts: Mapping[str, Mapping[str, float]], now_unix_s: float | None = None
) -> str | None:
    """Why a run without a recorded end counts as lost; None while it may well go on.

    On this machine the processes are asked: a run lives while one of its training processes does,
    and its agent still has to tell of the end while that lives. Of another machine only the silence
    is known.

    Args:
        meta: the store's meta.
        hosts: the store's hosts.
        now_unix_s: the time; now where it is None.
    """
    here = host_name()
    local = [process for process in (meta.get("processes") or {}).values() if process.get("host") == here]
    pids = [*local, (meta.get("agents") or {}).get(here) or {}]
    known = [alive(process["pid"]) for process in pids if isinstance(process.get("pid"), int)]
    if any(known):
        return None
    now = time.time() if now_unix_s is None else now_unix_s
    newest = max((host["received_unix_s"] for host in hosts.values()), default=0.0)
    silent_s = now - max(newest, float(meta.get("started_unix_s") or 0.0))
    if known and set(hosts) <= {here}:
        return "lost: its processes are gone, and no end was recorded"
    if silent_s > SILENCE_S:
        return f"lost: silent for {_span(silent_s)}, and no end was recorded"
    return None


def alive(pid: int) -> bool | None:
    """Whether a process runs (a zombie does not); None where it cannot be told."""
    if os.name == "nt":  # there, signal 0 would end it
        return None
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return _answers(pid)
    return state not in "ZX"


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def host_name() -> str:
    """This host's name, as runs are recorded under it."""
    name = socket.gethostname().split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:64].lstrip("-_") or "host"


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
