"""`/metrics`: the live runs in Prometheus' text format, for those who keep fleet-wide history there.

Prometheus proves itself with the viewer's token (`authorization: {credentials: …}` in its
configuration). What was not measured is left out, never written as zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flask import Blueprint, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from monitor.bridges.gauges import Sample, of_run
from monitor.report import LIVE

from .ingest import Ingest
from .live import Live
from .source import Source

_FAMILY = re.compile(r"_total\Z")
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
    registry = CollectorRegistry()
    registry.register(_SampleCollector(samples))
    return generate_latest(registry).decode()


class _SampleCollector(Collector):
    """Hands the library what was told, one family a name. A family's counter is named without `_total`."""

    def __init__(self, samples: list[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for name, kind, text, labels, value in self._samples:
            family = families.setdefault(name, Metric(_FAMILY.sub("", f"torchvitals_{name}"), text, kind))
            family.add_sample(f"torchvitals_{name}", dict(labels), value)
        return iter(families.values())
