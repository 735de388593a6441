"""OTLP, taken by a real HTTP receiver that decodes what comes."""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from collector import Receiver
from waiting import until

from monitor.bridges.to_otlp import Pusher

SAMPLES = [
    ("steps_total", "counter", "Steps.", {"run": "r"}, 7.0),
    ("step_p50_seconds", "gauge", "Median.", {"run": "r"}, 0.02),
    ("step_p50_seconds", "gauge", "Median.", {"run": "s"}, 0.03),
]


def test_what_is_told_arrives(receiver: Receiver):
    """Names, units, labels and values; counters as cumulative sums since the hub began."""
    pusher = Pusher(receiver.url, lambda: SAMPLES, "1.2", every_s=60.0)
    try:
        assert pusher.push()
    finally:
        pusher.close()
    path, request = receiver.taken[0]
    assert path == "/v1/metrics"
    [resource] = request.resource_metrics
    assert {a.key: a.value.string_value for a in resource.resource.attributes}[
        "service.name"
    ] == "torchvitals"
    steps, median = resource.scope_metrics[0].metrics
    assert (steps.name, steps.sum.is_monotonic, steps.sum.aggregation_temporality) == (
        "torchvitals.steps",
        True,
        2,
    )
    assert (median.name, median.unit) == ("torchvitals.step_p50_seconds", "s")
    points = [(p.attributes[0].value.string_value, p.as_double) for p in median.gauge.data_points]
    assert points == [("r", 0.02), ("s", 0.03)]


def test_it_pushes_by_itself_and_a_last_time_at_the_end(receiver: Receiver):
    """What happened since the last push is not lost with the hub."""
    pusher = Pusher(f"{receiver.url}/v1/metrics", lambda: SAMPLES, "1.2", every_s=0.02)
    until(lambda: len(receiver.taken) >= 2)
    pusher.close()
    assert {path for path, _ in receiver.taken} == {"/v1/metrics"}


def test_a_failure_to_tell_does_not_end_it(receiver: Receiver):
    """The next push comes."""
    tries = iter(range(10_000))

    def samples() -> list:
        if next(tries) == 0:
            raise OSError("a damaged store")
        return SAMPLES

    pusher = Pusher(receiver.url, samples, "1.2", every_s=0.02)
    until(lambda: receiver.taken)
    pusher.close()
