"""MLflow: a run of ours as a run there. The only file that knows mlflow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlflow.entities import Metric, Param, RunTag
from mlflow.tracking import MlflowClient

from monitor.bridges.finding_text import finding_text

#: Longest value of a parameter and of a tag that every MLflow server takes.
_PARAM, _TAG = 500, 5_000
#: Metrics that are sent together: MLflow takes at most 1,000 a request.
_TOGETHER = 500
#: Our end -> MLflow's.
_STATUS = {"finished": "FINISHED", "crashed": "FAILED", "killed": "KILLED"}


class Mlflow:
    """One run of an experiment.

    Args:
        meta: of our run.
        uri: the tracking server's; None for what MLFLOW_TRACKING_URI says.
        experiment: its name, made where it is absent.

    Raises:
        mlflow.exceptions.MlflowException: the server refuses or cannot be reached.
    """

    def __init__(self, meta: Mapping[str, Any], uri: str | None, experiment: str) -> None:
        self._client = MlflowClient(tracking_uri=uri)
        known = self._client.get_experiment_by_name(experiment)
        exp_id = known.experiment_id if known else self._client.create_experiment(experiment)
        began_ms = int(float(meta.get("started_unix_s") or 0) * 1000)
        run = self._client.create_run(exp_id, start_time=began_ms or None, run_name=str(meta.get("name")))
        self._run: str = run.info.run_id
        self._waiting: list[Metric] = []
        self._findings: list[str] = []
        params = [Param(str(k), str(v)[:_PARAM]) for k, v in (meta.get("config") or {}).items()]
        tags = [RunTag("torchvitals.run", str(meta.get("run")))]
        self._client.log_batch(self._run, params=params[:100], tags=tags)

    def row(self, step: int, unix_s: float, values: Mapping[str, float]) -> None:
        """Each value is a metric `torchvitals/NAME`."""
        at = int(unix_s * 1000)
        self._waiting += [Metric(f"torchvitals/{name}", value, at, step) for name, value in values.items()]
        if len(self._waiting) >= _TOGETHER:
            self._flush()

    def finding(self, finding: Mapping[str, Any], step: int, unix_s: float) -> None:
        """A tag `torchvitals.finding.CODE`, and a chapter of the artifact `torchvitals/findings.md`."""
        self._flush()
        over = " (over)" if finding.get("cleared_at_s") is not None else ""
        value = f"{finding['severity']}{over}: {finding['title']}"[:_TAG]
        self._client.set_tag(self._run, f"torchvitals.finding.{finding['code']}", value)
        self._findings.append(f"step {step}: {finding_text(finding)}")

    def close(self, found: Mapping[str, Any]) -> None:
        """Verdict, findings and report, then the end."""
        self._flush()
        verdict = (found.get("verdict") or {}).get("text")
        if verdict:
            self._client.set_tag(self._run, "torchvitals.verdict", str(verdict)[:_TAG])
        if self._findings:
            self._client.log_text(self._run, "\n\n".join(self._findings), "torchvitals/findings.md")
        self._client.log_text(self._run, json.dumps(found, indent=1), "torchvitals/report.json")
        self._client.set_terminated(self._run, _STATUS.get(found["status"], "FINISHED"))

    def _flush(self) -> None:
        for first in range(0, len(self._waiting), _TOGETHER):
            self._client.log_batch(self._run, metrics=self._waiting[first : first + _TOGETHER])
        self._waiting = []
