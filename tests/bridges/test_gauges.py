"""A live run as named numbers."""

from __future__ import annotations

from typing import Any

from monitor.bridges.gauges import of_run


def told(**state: Any) -> dict[str, float]:
    return {
        name: value for name, *_, value in of_run({"run": "r", "name": "n", "status": "running", **state})
    }


def test_units_are_base_units():
    """Seconds, bytes and ratios, whatever the page shows."""
    found = told(tiles={"step_p50_ms": 20.0, "rss_mb": 2.0, "gpu": [{"gpu": 0, "gpu_util": 50.0}]})
    assert (found["step_p50_seconds"], found["resident_memory_bytes"]) == (0.02, 2e6)
    assert found["gpu_utilisation_ratio"] == 0.5


def test_what_is_not_measured_is_left_out():
    """None, "NaN", and truth values are no numbers."""
    found = told(tiles={"loss": "NaN", "data_share": None, "main_cpu": True, "gpu": None})
    assert not {"loss", "data_share_ratio", "main_cpu_cores"} & set(found)


def test_findings_that_last_are_counted_by_severity():
    """Zero is told too, so that an alert can tell none from no data."""
    findings = [{"severity": "warning", "cleared_at_s": None}, {"severity": "warning", "cleared_at_s": 2.0}]
    counts = {
        labels["severity"]: value
        for name, _, _, labels, value in of_run({"run": "r", "findings": findings})
        if name == "findings"
    }
    assert counts == {"info": 0.0, "warning": 1.0, "critical": 0.0}
