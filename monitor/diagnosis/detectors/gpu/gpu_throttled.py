"""The GPU lowers its clock for heat or for want of power. A power cap at full load is no fault.

What: in half of the samples the GPU lowers its clock for heat, for its power supply, or by a hardware
    slowdown. Mild heat that costs less than 15 % of the clock is information. The power cap alone is no
    fault: it is set in 90 % of the samples of a healthy, fully loaded H100.
Why it costs: everything on it slows down.
How to see it: `throttled_share`, `temperature_c`, `clock_lost_share`.
How to fix it: cooling, fans, cables, a lower power limit.
How sure we are: the driver says so. What it costs is not promised. Not run on a real GPU yet.

Columns: `gpu_throttle_bits`, `gpu_sm_clock_mhz`, `gpu_sm_clock_max_mhz`, `gpu_temperature_c`
Facts: cuda: `uuid`; of the host: `gpus`
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.window import Table, Window
from monitor.diagnosis.signals.cpu_contention import sample_values
from monitor.diagnosis.signals.cuda_device import flagged_share, gpu_facts, on_devices, sample_mean
from monitor.diagnosis.signals.robust import median

CODE = "gpu_throttled"
NEEDS = frozenset({"cuda", "gpu"})
CURVE = ("gpu", "gpu_sm_clock_mhz")

#: Reasons that are faults, by NVIDIA's NVML: hardware slowdown, thermal in software and in hardware, power
#: brake. 0x4, the software power cap, is none (measurements.md#gpu-power-cap).
HARDWARE, SOFT_HEAT, HARD_HEAT, BRAKE = 0x8, 0x20, 0x40, 0x80
FAULTS = HARDWARE | SOFT_HEAT | HARD_HEAT | BRAKE

#: Share of the samples that must show one, and how many there must be (own: a moment is no state).
SHARE = 0.5
SAMPLES = 5

#: Clock lost against the highest (gpuprof: 15 % at 82 °C and more): below, heat is only told of.
CLOCK_LOST = 0.15


def detect(window: Window) -> Finding | None:
    """A warning where the clock suffers, or the hardware itself pulls the brake."""
    found = {
        name: (table, ranks) for name, (table, ranks) in on_devices(window).items()
        if len(_bits(table)) >= SAMPLES and flagged_share((_bits(table) & FAULTS) > 0) >= SHARE
    }  # fmt: skip
    if not found:
        return None
    name = max(found, key=lambda one: flagged_share((_bits(found[one][0]) & FAULTS) > 0))
    table, bits = found[name][0], _bits(found[name][0])
    lost = clock_lost(table)
    hard = flagged_share((bits & (HARDWARE | HARD_HEAT | BRAKE)) > 0) >= SHARE
    severity: Severity = "warning" if hard or lost >= CLOCK_LOST else "info"
    temperature = sample_mean(table, "gpu_temperature_c")
    return Finding(
        CODE, severity, "The GPU is slowed down", _cause(bits), {
            "gpu": name, "device": str(gpu_facts(window, name).get("name") or ""),
            "throttled_share": round(flagged_share((bits & FAULTS) > 0), 3),
            **({"temperature_c": round(temperature, 1)} if temperature == temperature else {}),
            **({"clock_lost_share": round(lost, 3)} if lost == lost else {}),
        },
        _ADVICE[_cause(bits)],
        ranks=tuple(sorted({rank for one in found.values() for rank in one[1]})),
    )  # fmt: skip


def clock_lost(table: Table) -> float:
    """Share of the highest clock that is missing, 0 to 1; NaN where the clocks are unknown."""
    top = median(sample_values(table, "gpu_sm_clock_max_mhz"))
    return 1 - median(sample_values(table, "gpu_sm_clock_mhz")) / top if top > 0 else float("nan")


_HEAT, _POWER, _OTHER = "heat", "power brake", "hardware slowdown"
_ADVICE = {
    _HEAT: "Cool it: clear the air's way, look at fans and the devices beside it, or lower the power limit.",
    _POWER: "The power supply cannot feed it: look at the machine's power cables and supplies.",
    _OTHER: "The hardware lowers the clock itself, for heat or power: look at cooling and power supply.",
}


def _cause(bits: NDArray[np.int64]) -> str:
    if flagged_share((bits & (SOFT_HEAT | HARD_HEAT)) > 0) > 0:
        return _HEAT
    return _POWER if flagged_share((bits & BRAKE) > 0) > 0 else _OTHER


def _bits(table: Table) -> NDArray[np.int64]:
    """Reasons in each sample that tells them."""
    bits = sample_values(table, "gpu_throttle_bits")
    return np.asarray(bits[~np.isnan(bits)], dtype=np.int64)
