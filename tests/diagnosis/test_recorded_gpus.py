"""GPU checks on what real GPUs did: figures are taken from recorded traces, and judged as a run's own."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from devices import MODEL, on_gpu
from sources import ROOT
from windows import loader

from monitor.diagnosis.core.doctor import examine
from monitor.diagnosis.core.finding import Finding

DATA = ROOT.parent / "shared/data"
#: ResNet-50 in float32 on a V100, batches of 32 images as float32.
IMAGES_MB = 32 * 3 * 224 * 224 * 4 / 1e6
RESNET = {**MODEL, "conv_layers": 53, "matmuls": [{"kind": "conv", "elements": 900_000}]}
#: Share of the step that the recorder's own report gives to the loader.
WAITED = {"num_workers_0_a": 0.3337, "num_workers_4_a": 0.0084}


@dataclass(frozen=True)
class Trace:
    """In few numbers: share of time some kernel ran, share of copies to the device, pageable copies."""

    busy: float
    copied: float
    pageable: int


@cache
def trace(name: str) -> Trace:
    path = DATA / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("needs the recorded data")
    events = [
        one for one in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if one.get("ph") == "X"
    ]
    kernels = sorted(
        (one["ts"], one["ts"] + one["dur"]) for one in events if str(one["cat"]).lower() == "kernel"
    )
    busy, end = 0.0, kernels[0][0]
    for began, ended in kernels:
        busy, end = busy + max(ended - max(began, end), 0), max(end, ended)
    span = end - kernels[0][0]
    copies = [one for one in events if "HtoD" in one["name"]]
    pageable = sum("Pageable" in one["name"] for one in copies)
    return Trace(busy / span, sum(one["dur"] for one in copies) / span, pageable)


def told(name: str, recorded: Trace, model: dict[str, Any]) -> dict[str, Finding]:
    waited = 50 * WAITED.get(name.rpartition("/")[2], 0.0)
    copied = 50 * recorded.copied
    facts = {
        **loader(pin_memory=recorded.pageable == 0),
        "model/1": model,
        "precision": {"autocast": False},
        "batch/1": {"device": "cpu", "pageable_mb": IMAGES_MB if recorded.pageable else 0.0},
    }
    seen = on_gpu(
        facts=facts, cuda={"capability": [7, 0], "matmul_precision": "highest", "h2d_watched": True},
        gpu={"gpu_util": 100 * recorded.busy}, data=waited, h2d=copied, other=31 - waited - copied,
        rows={"gpu_idle_ms": waited, "gpu_data_ms": waited},
    )  # fmt: skip
    return {finding.code: finding for finding in examine(seen).findings}


@pytest.mark.parametrize("name", sorted(WAITED))
def test_the_recorded_resnet(name: str) -> None:
    """float32 on Tensor Cores, pageable copies that cost little: advice. The loader's share is its own."""
    recorded = trace(f"kineto_resnet50_v100/{name}")
    findings = told(name, recorded, RESNET)
    assert recorded.pageable == 12
    assert findings["pin_memory_off"].severity == "info"
    assert findings["amp_off"].severity == "info"
    assert not {"gpu_underused", "launch_bound", "tf32_off", "gpu_throttled"} & set(findings)
    assert ("data_starvation" in findings) == (name == "num_workers_0_a")


def test_a_busy_gpu_is_left_alone() -> None:
    """97 % busy, nothing copied: no warning."""
    recorded = trace("hta/v100_busy")
    findings = told("v100_busy", recorded, MODEL)
    assert (recorded.pageable, recorded.busy > 0.95) == (0, True)
    assert [code for code, finding in findings.items() if finding.severity != "info"] == []
    assert "pin_memory_off" not in findings
