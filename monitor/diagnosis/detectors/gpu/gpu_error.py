"""The driver reported an error of a GPU, lost it, or its memory lost data.

What: the driver reported a critical error (Xid), the device was lost, or memory errors that could not be
    corrected came during the run. A warning where a program did something illegal (Xid 13, 31) or the
    number is not known to us; what is left by a killed program (43, 45) is nothing.
Why it costs: results may be wrong, or the run ends.
How to see it: `xids`, `uncorrected_errors`, the driver's own words; the kernel's log.
How to fix it: take the machine out of service. A program's own error: `CUDA_LAUNCH_BLOCKING=1`,
    compute-sanitizer.
How sure we are: the driver's word, by NVIDIA's list of Xid errors. Every path was run against a library in
    the driver's place, none on a failing device.

Columns: `gpu_ecc_uncorrected`
Facts: cuda: `uuid`; of the host: `gpus`
Events: `gpu_error`: `xid`, `lost`, `error`, `gpu`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.cpu_contention import sample_values
from monitor.diagnosis.signals.cuda_device import finite, gpu_name

CODE = "gpu_error"
NEEDS = frozenset({"gpu"})

#: Xids by what they mean (NVIDIA's catalogue of Xid errors): faults of the hardware or its driver, …
HARDWARE = frozenset({48, 62, 64, 74, 79, 92, 94, 95, 119, 120, 140, 143})
#: … a program's own (an exception in a kernel, a page fault), …
PROGRAM = frozenset({13, 31})
#: … and what follows when a program's work on the device is cleaned up, which is no error of its own.
CLEAN_UP = frozenset({43, 45})

_LOST, _MEMORY = "the device was lost", "memory errors that could not be corrected"
_PROGRAM = "a kernel did something illegal"


def detect(window: Window) -> Finding | None:
    """Critical where the device or its driver failed; a warning where a program did something illegal."""
    events = [event for event in window.events_of("gpu_error") if _concerns(window, event)]
    lost = [event for event in events if event.get("lost")]
    xids = {int(event["xid"]) for event in events if _is_int(event.get("xid"))}
    broken, other = sorted(xids & HARDWARE), sorted(xids - HARDWARE - CLEAN_UP)
    damaged = _damaged(window)
    severity: Severity = "critical"
    cause: str
    if lost or 79 in broken:
        cause, advice = _LOST, _REPLACE
    elif broken:
        cause, advice = message("Xid {number}", number=broken[0]), _REPLACE
    elif damaged:
        cause, advice = _MEMORY, _REPLACE
    elif set(other) & PROGRAM:
        cause, advice, severity = _PROGRAM, _DEBUG, "warning"
    elif other:
        cause, advice, severity = message("Xid {number}", number=other[0]), _CHECK_XID_LIST, "warning"
    else:
        return None
    return Finding(
        CODE, severity, "The GPU reported an error", cause, {
            **({"xids": ", ".join(map(str, sorted(xids - CLEAN_UP)))} if xids - CLEAN_UP else {}),
            **({"uncorrected_errors": damaged} if damaged else {}),
            "gpu": ", ".join(sorted({str(event.get("gpu")) for event in events})) or None,
            "error": str(_first(lost or events).get("error") or ""),
        },
        advice, ranks=tuple(sorted(window.ranks)),
    )  # fmt: skip


_REPLACE = (
    "Save what can be saved and take the machine out of service: results since then may be wrong. The "
    "kernel's log (dmesg) and nvidia-smi -q tell more."
)
_CHECK_XID_LIST = "Look the number up in NVIDIA's list of Xid errors; the kernel's log (dmesg) tells more."
_DEBUG = (
    "A kernel touched memory that is not its own: run once with CUDA_LAUNCH_BLOCKING=1 to see which call it "
    "was, or under compute-sanitizer."
)


def _concerns(window: Window, event: Mapping[str, Any]) -> bool:
    """Whether it is of a board that a rank uses; of any, where that cannot be told."""
    names = {gpu_name(window, rank) for rank in window.ranks.values()}
    boards = {name.rpartition("/")[2].partition(".")[0] for name in names if name}
    board = str(event.get("gpu")).partition(".")[0]
    return None in names or not board.isdigit() or board in boards


def _damaged(window: Window) -> int:
    """Uncorrected memory errors that came during the run, over all devices."""
    names = {gpu_name(window, rank) for rank in window.ranks.values()}
    more = 0.0
    for name in names - {None}:
        counted = finite(sample_values(window.gpus[str(name)], "gpu_ecc_uncorrected"))
        known = counted[~np.isnan(counted)]
        more += max(float(known[-1] - known[0]), 0.0) if len(known) else 0.0
    return int(more)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _first(events: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return events[0] if events else {}
