"""Another process is on the same GPU.

What: another process uses 5 % of the GPU or more, in half of the samples; information where it only holds
    memory, a twentieth of the device or more. Not checked where none of the run's own processes is among
    those the driver shows, as in many containers.
Why it costs: the two take turns.
How to see it: `others_percent`, `others_mb`, and which `processes`.
How to fix it: another device, or wait. End what is left over from earlier runs.
How sure we are: by process id, as the driver shows them. Not run on a real GPU yet.

Columns: `gpu_others_util`, `gpu_others_memory_mb`, `gpu_own_memory_mb`, `gpu_memory_total_mb`
Facts: cuda: `uuid`; of the host: `gpus` with `others`
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.window import Table, Window
from monitor.diagnosis.signals.cpu_contention import sample_values
from monitor.diagnosis.signals.cuda_device import flagged_share, gpu_facts, measured, on_devices, sample_mean
from monitor.diagnosis.signals.robust import Values, median

CODE = "gpu_shared"
NEEDS = frozenset({"cuda", "gpu", "gpu_processes"})
CURVE = ("gpu", "gpu_memory_used_mb")

#: Per cent of the GPU that others use, mean, and share of the samples in which they use any (own).
OTHERS_UTIL = 5.0
SHARE = 0.5

#: Memory that others hold, as a share of the device, to be worth a word while they compute nothing (own).
OTHERS_MEMORY = 0.05

#: Samples that must have been taken (own).
SAMPLES = 3

_COMPUTES, _HOLDS = "another process computes on it", "another process holds memory on it"


def detect(window: Window) -> Finding | None:
    """A warning where they compute; information where they only hold memory, or nobody tells what they do."""
    found = {
        name: (table, ranks) for name, (table, ranks) in on_devices(window).items()
        if _computes(table) or _holds(table)
    }  # fmt: skip
    if not found:
        return None
    name = max(found, key=lambda one: (_computes(found[one][0]), median(_others(found[one][0]))))
    table = found[name][0]
    severity: Severity = "warning" if _computes(table) else "info"
    used = sample_mean(table, "gpu_others_util")
    return Finding(
        CODE, severity, "The GPU is shared", _COMPUTES if _computes(table) else _HOLDS, measured({
            "gpu": name, "device": str(gpu_facts(window, name).get("name") or ""),
            "others_mb": round(median(_others(table)), 1), "others_percent": round(used, 1),
            "processes": _named(window, name),
        }),
        "Give the run a GPU of its own (CUDA_VISIBLE_DEVICES), or wait until the others are done: they take "
        "turns with it, and times measured now are not the run's own."
        if _computes(table) else
        "Its memory is missing here. End what is left over from earlier runs, or choose another GPU.",
        ranks=tuple(sorted({rank for one in found.values() for rank in one[1]})),
    )  # fmt: skip


def _others(table: Table) -> Values:
    return sample_values(table, "gpu_others_memory_mb")


def _computes(table: Table) -> bool:
    used = sample_values(table, "gpu_others_util")
    known = used[~np.isnan(used)]
    return len(known) >= SAMPLES and float(known.mean()) >= OTHERS_UTIL and flagged_share(known > 0) >= SHARE


def _holds(table: Table) -> bool:
    held, total_mb = _others(table), median(sample_values(table, "gpu_memory_total_mb"))
    return len(held) >= SAMPLES and median(held) >= OTHERS_MEMORY * total_mb


def _named(window: Window, name: str) -> str:
    """The others as "pid name", for a person to find them."""
    others = [one for one in gpu_facts(window, name).get("others") or () if isinstance(one, Mapping)]
    return ", ".join(f"{one.get('pid')} {one.get('name') or ''}".strip() for one in others)
