"""Prometheus' text format."""

from __future__ import annotations

import math
import re

import pytest
from webhub import INGEST, Hub

from monitor.web.metrics import MEDIA_TYPE, text

COMMENT = r"# (HELP|TYPE) torchvitals_[a-z0-9_]+ .+"
SAMPLE = r'torchvitals_[a-z0-9_]+(\{([a-z]+="([^"\\\n]|\\.)*",?)+\})? \S+'
LINE = re.compile(rf"({COMMENT}|{SAMPLE})\Z")


def scraped(hub: Hub) -> str:
    answer = hub.get("/metrics")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, MEDIA_TYPE)
    return answer.text


def test_every_line_is_in_the_format(hub: Hub):
    """HELP and TYPE once for each metric, then its samples, then a newline."""
    lines = scraped(hub).split("\n")
    assert lines.pop() == ""
    assert [line for line in lines if not LINE.match(line)] == []
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types))


def test_a_live_run_is_told_of_in_base_units(hub: Hub):
    """Seconds and bytes; what was not measured is left out."""
    tiles = {"step_p50_ms": 20.0, "rss_mb": 3.5, "tokens_per_s": None, "loss": "NaN"}
    state = {"run": "run-1", "name": 'a"b\\c\n', "status": "running", "steps": 12, "tiles": tiles}
    hub.pipeline.states["run-1"] = {**state, "findings": [{"severity": "warning", "cleared_at_s": None}]}
    found = scraped(hub)
    labels = r'run="run-1",name="a\"b\\c\n"'
    assert f"torchvitals_step_p50_seconds{{{labels}}} 0.02\n" in found
    assert f"torchvitals_resident_memory_bytes{{{labels}}} 3500000\n" in found
    assert f"torchvitals_steps_total{{{labels}}} 12\n" in found
    assert f'torchvitals_findings{{{labels},severity="warning"}} 1\n' in found
    assert "tokens" not in found
    assert "torchvitals_loss" not in found


def test_each_gpu_is_told_of(hub: Hub):
    """With the device as a label, in base units; what a device does not tell is left out."""
    gpus = [{"gpu": "h/0", "gpu_util": 87.0, "gpu_memory_used_mb": 12.0}, {"gpu": "h/1.2", "gpu_util": None}]
    hub.pipeline.states["run-1"] = {"run": "run-1", "name": "n", "status": "running", "tiles": {"gpu": gpus}}
    found = scraped(hub)
    labels = 'run="run-1",name="n",gpu="h/0"'
    assert f"torchvitals_gpu_utilisation_ratio{{{labels}}} 0.87\n" in found
    assert f"torchvitals_gpu_memory_used_bytes{{{labels}}} 12000000\n" in found
    assert "h/1.2" not in found
    assert all(LINE.match(line) for line in found.split("\n")[:-1])


def test_agents_and_viewers_are_counted(hub: Hub):
    """A hub that nobody feeds can be seen from outside."""
    hub.agent("run-1")
    hub.viewer()
    assert {"torchvitals_agents 1", "torchvitals_viewers 1"} <= set(scraped(hub).split("\n"))


def test_it_takes_the_viewers_token(hub: Hub):
    """Not the agents', and not none."""
    assert [hub.get("/metrics", token).status_code for token in (None, INGEST)] == [403, 403]


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.0, "1"), (0.1, "0.1"), (math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (1e300, "1e+300")],
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, written: str):
    """Infinity and NaN have names of their own there."""
    assert text([("x", "gauge", "X.", {}, value)]).split("\n")[2] == f"torchvitals_x {written}"
