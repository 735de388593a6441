"""Prometheus' text format."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from prometheus_client import parser
from webhub import INGEST, Hub

from monitor.bridges import gauges
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
    labels = r'name="a\"b\\c\n",run="run-1"'
    assert f"torchvitals_step_p50_seconds{{{labels}}} 0.02\n" in found
    assert f"torchvitals_resident_memory_bytes{{{labels}}} 3.5e+06\n" in found
    assert f"torchvitals_steps_total{{{labels}}} 12.0\n" in found
    assert f'torchvitals_findings{{{labels},severity="warning"}} 1.0\n' in found
    assert "tokens" not in found
    assert "torchvitals_loss" not in found


def test_each_gpu_is_told_of(hub: Hub):
    """With the device as a label, in base units; what a device does not tell is left out."""
    gpus = [{"gpu": "h/0", "gpu_util": 87.0, "gpu_memory_used_mb": 12.0}, {"gpu": "h/1.2", "gpu_util": None}]
    hub.pipeline.states["run-1"] = {"run": "run-1", "name": "n", "status": "running", "tiles": {"gpu": gpus}}
    found = scraped(hub)
    labels = 'gpu="h/0",name="n",run="run-1"'
    assert f"torchvitals_gpu_utilisation_ratio{{{labels}}} 0.87\n" in found
    assert f"torchvitals_gpu_memory_used_bytes{{{labels}}} 1.2e+07\n" in found
    assert "h/1.2" not in found
    assert all(LINE.match(line) for line in found.split("\n")[:-1])


def test_agents_and_viewers_are_counted(hub: Hub):
    """A hub that nobody feeds can be seen from outside."""
    hub.agent("run-1")
    hub.viewer()
    assert {"torchvitals_agents 1.0", "torchvitals_viewers 1.0"} <= set(scraped(hub).split("\n"))


def test_it_takes_the_viewers_token(hub: Hub):
    """Not the agents', and not none."""
    assert [hub.get("/metrics", token).status_code for token in (None, INGEST)] == [403, 403]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1.0, "1.0"),
        (0.1, "0.1"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (1e300, "1e+300"),
    ],
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, written: str):
    """Infinity and NaN have names of their own there."""
    assert text([("x", "gauge", "X.", {}, value)]).split("\n")[2] == f"torchvitals_x {written}"


def test_prometheus_own_reader_reads_it(hub: Hub):
    """Every sample, under its type and with its labels as they were before they were written."""
    name = 'a"b\\c\n{},='
    state = {"run": "run-1", "name": name, "status": "running", "steps": 12}
    hub.pipeline.states["run-1"] = {**state, "tiles": {"step_p50_ms": 20.0, "loss": 1e300}}
    families = {f.name: f for f in parser.text_string_to_metric_families(scraped(hub))}
    [steps] = families["torchvitals_steps"].samples
    assert (families["torchvitals_steps"].type, steps.value, steps.labels["name"]) == ("counter", 12.0, name)
    assert families["torchvitals_loss"].samples[0].value == 1e300
    assert {f.type for f in families.values()} <= {"gauge", "counter"}
    assert all(f.documentation for f in families.values())


def test_grafana_asks_for_nothing_that_is_not_told():
    """Each metric of grafana/torchvitals.json is one that /metrics tells of a run that measures all."""
    board = json.loads((Path(__file__).parents[2] / "grafana/torchvitals.json").read_text())
    asked = set(re.findall(r"torchvitals_[a-z0-9_]+", json.dumps(board)))
    tiles = {
        **dict.fromkeys(gauges._TILES, 1.0),
        "gpu": [{"gpu": 0, **dict.fromkeys(gauges._GPU_TILES, 1.0)}],
    }
    told = {f"torchvitals_{name}" for name, *_ in gauges.of_run({"run": "r", "steps": 1, "tiles": tiles})}
    assert asked - told == {"torchvitals_agents", "torchvitals_viewers"}
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
