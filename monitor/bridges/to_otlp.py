"""OTLP: what `/metrics` tells, pushed from the hub to a collector. The only file that knows OpenTelemetry.

The exporter's own settings hold: OTEL_EXPORTER_OTLP_HEADERS, …_CERTIFICATE, …_TIMEOUT, …
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from monitor.bridges.gauges import Sample

_log = logging.getLogger("monitor.bridges")

#: Seconds between two pushes: what collectors are used to from Prometheus.
EVERY_S = 15.0
#: Path of OTLP's metrics, which an endpoint may leave out (OpenTelemetry's own rule).
_PATH = "/v1/metrics"


class Pusher:
    """Pushes in a thread of its own until it is closed. A collector that is away costs a log line a minute.

    Args:
        endpoint: the collector's address, with or without its path.
        samples: what there is to tell now.
        version: of torchvitals, told as the scope's.
        every_s: seconds between two pushes.
    """

    def __init__(
        self,
        endpoint: str,
        samples: Callable[[], Iterable[Sample]],
        version: str,
        every_s: float = EVERY_S,
    ) -> None:
        url = endpoint.rstrip("/")
        self._exporter = OTLPMetricExporter(url if url.endswith(_PATH) else url + _PATH)
        self._samples, self._every_s = samples, every_s
        self._began_ns, self._stop = time.time_ns(), threading.Event()
        self._resource = Resource({"service.name": "torchvitals", "service.version": version})
        self._scope = InstrumentationScope("torchvitals", version)
        self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Push a last time and end."""
        self._stop.set()
        self._thread.join(self._every_s)
        self._exporter.shutdown()

    def push(self) -> bool:
        """Send what there is now; False where the collector did not take it."""
        metrics = _metrics(list(self._samples()), self._began_ns, time.time_ns())
        scope = ScopeMetrics(self._scope, metrics, "")
        data = MetricsData([ResourceMetrics(self._resource, [scope], "")])
        return bool(self._exporter.export(data) is MetricExportResult.SUCCESS)

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self._try()
        self._try()

    def _try(self) -> None:
        try:
            self.push()
        except Exception as error:  # noqa: BLE001 - the hub outlives its collector
            _log.warning("nothing pushed: %s: %s", type(error).__name__, error)


def _metrics(samples: list[Sample], began_ns: int, now_ns: int) -> list[Metric]:
    named: dict[str, list[Sample]] = {}
    for sample in samples:
        named.setdefault(sample[0], []).append(sample)
    return [_metric(name, same, began_ns, now_ns) for name, same in named.items()]


def _metric(name: str, same: list[Sample], began_ns: int, now_ns: int) -> Metric:
    _, kind, about, _, _ = same[0]
    points = [_point(labels, value, began_ns, now_ns) for *_, labels, value in same]
    data: Any = (
        Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        if kind == "counter"
        else Gauge(points)
    )
    return Metric(f"torchvitals.{name.removesuffix('_total')}", about, _unit(name), data)


def _point(labels: Mapping[str, str], value: float, began_ns: int, now_ns: int) -> NumberDataPoint:
    return NumberDataPoint(dict(labels), began_ns, now_ns, value)


def _unit(name: str) -> str:
    """In UCUM, as OTLP wants it."""
    endings = {"_seconds": "s", "_bytes": "By", "_ratio": "1", "_watts": "W"}
    if name.endswith("_per_second"):
        return "1/s"
    return next((unit for ending, unit in endings.items() if name.endswith(ending)), "")
