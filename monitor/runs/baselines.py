"""Baselines: the run that others of its project are measured against. In `baselines.json` of the run folder.

A project is a script: runs of one script are worth comparing, whatever each of them is called.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitor.state import write_private

FILE_NAME = "baselines.json"
#: Projects remembered; beyond it the one named first is forgotten.
MOST = 1_000
_MOST_BYTES = 1_000_000
#: Scripts that stand for somebody else's code; there the run's name tells more.
_SHELLS = frozenset({"ipykernel_launcher", "colab_kernel_launcher", "__main__", "-c", "-m", ""})

_changing = threading.Lock()


def project(meta: Mapping[str, Any]) -> str:
    """The project that a run belongs to: its script's name, or its own name where no script tells."""
    argv = meta.get("argv")
    script = os.path.basename(str(argv[0])) if isinstance(argv, list) and argv else ""
    stem = script.removesuffix(".py")
    return str(meta.get("name") or "run") if stem in _SHELLS else stem


def baselines(run_dir: Path) -> dict[str, str]:
    """Project → id of its baseline. What cannot be read counts as not there."""
    try:
        path = run_dir / FILE_NAME
        if path.stat().st_size > _MOST_BYTES:
            return {}
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): run for name, run in found.items() if isinstance(run, str)}


def set_baseline(run_dir: Path, name: str, run: str | None) -> None:
    """Make `run` the baseline of project `name`; None: it has none any more. Raises OSError."""
    with _changing:
        known = baselines(run_dir)
        known.pop(name, None)
        if run is not None:
            known[name] = run
        write_private(run_dir / FILE_NAME, dict(list(known.items())[-MOST:]))
