"""Weights & Biases: a run of ours as a run there. The only file that knows wandb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import wandb

from monitor.bridges.finding_text import finding_text


class Wandb:
    """One run of a project. Where it goes, and whether at all, is as WANDB_MODE and `wandb login` say.

    Args:
        meta: of our run.
        project: its name there.

    Raises:
        wandb.errors.Error: it refuses or cannot be reached.
    """

    def __init__(self, meta: Mapping[str, Any], project: str) -> None:
        # It must neither watch this process's own machine nor swallow our lines.
        settings = wandb.Settings(console="off", x_disable_stats=True, silent=True, disable_git=True)
        config = {**(meta.get("config") or {}), "torchvitals_run": meta.get("run")}
        self._run = wandb.init(project=project, name=str(meta.get("name")), config=config, settings=settings)
        # our rows come stream by stream, so steps do not only rise; the axis is a number of ours
        self._run.define_metric("torchvitals/step")
        self._run.define_metric("torchvitals/*", step_metric="torchvitals/step")

    def row(self, step: int, unix_s: float, values: Mapping[str, float]) -> None:
        """Each value is a metric `torchvitals/NAME`, over `torchvitals/step`."""
        named = {f"torchvitals/{name}": value for name, value in values.items()}
        self._run.log({**named, "torchvitals/step": step, "torchvitals/unix_s": unix_s})

    def finding(self, finding: Mapping[str, Any], step: int, unix_s: float) -> None:
        """A line of the run's summary, `torchvitals/findings/CODE`."""
        self._run.summary[f"torchvitals/findings/{finding['code']}"] = f"step {step}: {finding_text(finding)}"

    def close(self, found: Mapping[str, Any]) -> None:
        """The verdict, then the end: exit code 0 for a run that finished."""
        verdict = (found.get("verdict") or {}).get("text")
        if verdict:
            self._run.summary["torchvitals/verdict"] = str(verdict)
        self._run.finish(exit_code=0 if found["status"] in ("finished", "running") else 1)
