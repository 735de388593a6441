"""`/metrics`: the live runs in Prometheus' text format, for those who keep fleet-wide history there.

Prometheus proves itself with the viewer's token (`authorization: {credentials: …}` in its
configuration). What was not measured is left out, never written as zero.
"""

from __future__ import annotations

from collections.abc import Mapping

from flask import Blueprint, Response

from monitor.bridges.gauges import Sample, of_run
from monitor.report import LIVE

from .ingest import Ingest
from .live import Live
from .source import Source

#: The format's own media type.
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def blueprint(source: Source, live: Live, ingest: Ingest) -> Blueprint:
    """The route `/metrics`."""
    routes = Blueprint("metrics", __name__)

    @routes.get("/metrics")
    def metrics() -> Response:
        return Response(text(samples(source, live, ingest)), mimetype=None, content_type=MEDIA_TYPE)

    return routes


def samples(source: Source, live: Live, ingest: Ingest) -> list[Sample]:
    """What there is to tell now: every live run, and the hub itself."""
    ids = [str(run["run"]) for run in source.runs() if run.get("status") in LIVE]
    states = [state for state in map(source.snapshot, ids) if state is not None]
    return [
        *(sample for state in states for sample in of_run(state)),
        ("viewers", "gauge", "Browsers connected.", {}, float(live.viewers)),
        ("agents", "gauge", "Agents connected.", {}, float(ingest.agents)),
        ("batches_total", "counter", "Batches taken.", {}, float(ingest.batches)),
    ]


def text(samples: list[Sample]) -> str:
    """The exposition: each metric's HELP and TYPE once, its samples below."""
    lines: list[str] = []
    for name in dict.fromkeys(sample[0] for sample in samples):
        same = [sample for sample in samples if sample[0] == name]
        lines += [f"# HELP torchvitals_{name} {same[0][2]}", f"# TYPE torchvitals_{name} {same[0][1]}"]
        lines += [f"torchvitals_{name}{_labels(labels)} {_number(value)}" for *_, labels, value in same]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    def quoted(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    inner = ",".join(f'{key}="{quoted(value)}"' for key, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
