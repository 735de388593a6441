"""MLflow, with a real store of its own. Skipped where it is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

mlflow = pytest.importorskip("mlflow")
pytest.importorskip("sqlalchemy")

from mlflow.tracking import MlflowClient  # noqa: E402  it may be missing

from monitor.bridges.follow import follow  # noqa: E402
from monitor.bridges.to_mlflow import Mlflow  # noqa: E402
from monitor.store import Store  # noqa: E402


@pytest.mark.filterwarnings("ignore")
def test_a_run_arrives_whole(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Parameters, metrics with their steps, findings as tags and a page, the verdict, the report, the end."""
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    follow(store, Mlflow(store.meta(), uri, "digits"), lambda _: True)
    client = MlflowClient(tracking_uri=uri)
    [run] = client.search_runs([client.get_experiment_by_name("digits").experiment_id])
    assert (run.info.status, run.info.run_name, run.data.params["lr"]) == ("FINISHED", "digits", "0.1")
    [memory] = client.get_metric_history(run.info.run_id, "torchvitals/proc/0/rss_mb")
    assert (memory.value, memory.timestamp) == (500.0, 1_800_000_005_000)
    assert 236 < memory.step <= 249
    assert run.data.tags["torchvitals.finding.data_starvation"] == "warning: the loop waits"
    assert run.data.tags["torchvitals.verdict"]
    files = {file.path for file in client.list_artifacts(run.info.run_id, "torchvitals")}
    assert files == {"torchvitals/findings.md", "torchvitals/report.json"}
