"""Shared by all tests: a state folder of their own, so that no test meets a real hub or run."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tokens, ports and runs of this test live in its own folder."""
    state = tmp_path / "state"
    monkeypatch.setenv("MONITOR_STATE_DIR", str(state))
    monkeypatch.setenv("MONITOR_RUN_DIR", str(tmp_path / "runs"))
    monkeypatch.delenv("MONITOR", raising=False)
    return state
