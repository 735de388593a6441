"""A DataLoader worker was killed or crashed.

What: a loader worker was killed or crashed. Critical.
Why it costs: the run ends with it, or waits for a batch that never comes.
How to see it: how it died (`Killed`, `Bus error`, `Segmentation fault`) and its process ids.
How to fix it: killed: less memory per worker. Bus error: a larger /dev/shm. Segmentation fault, or unknown:
    run once with `num_workers=0`, so that the sample fails in the main process.
How sure we are: certain, from the agent that watches the processes or from torch's own error.

Facts: loader: `location`
Events: `worker_died`, `exception`, `rank_end`: `reason`, `message`, `pid`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.training_steps import train_loader

CODE = "worker_died"
NEEDS: frozenset[str] = frozenset()
CURVE = ("run", "steps_per_s")

#: What torch.utils.data raises in the main process (torch/utils/data/dataloader.py, _utils/signal_handling).
_TORCH_MESSAGE = re.compile(
    r"DataLoader worker \(pid\(?s?\)? ?(?P<pids>[\d, ]+)\)? "
    r"(?:exited unexpectedly|is killed by signal: (?P<signal>\w[\w ]*))"
)

_ADVICE = {
    "Killed": "The kernel, most likely its out-of-memory killer, ended it: use fewer workers, a smaller "
    "prefetch_factor, or datasets that do not copy themselves into every worker (numpy arrays, not lists).",
    "Bus error": "Shared memory (/dev/shm) is full: enlarge it (docker run --shm-size=8g), or use fewer "
    "workers.",
    "Segmentation fault": "Native code crashed in the dataset: try num_workers=0 to see where, and a "
    "multiprocessing_context of 'spawn' where a library does not survive fork.",
}
_ELSE = "Run once with num_workers=0: the same sample then fails in the main process, with a traceback."


def detect(window: Window) -> Finding | None:
    """Told by the agent, which sees the processes, or by the error torch raised."""
    deaths = [_from_torch(event) or _from_agent(event) for event in window.events_of("worker_died")]
    deaths += [death for event in window.events_of("exception", "rank_end") if (death := _from_torch(event))]
    if not deaths:
        return None
    first = next((death for death in deaths if death["how"] != "unknown"), deaths[0])
    ranks = tuple(sorted({death["rank"] for death in deaths}))
    rank = window.ranks.get(first["rank"])
    loader = train_loader(rank) if rank else None
    pids = sorted({pid for death in deaths for pid in death["pids"]})
    evidence = {"workers_died": max(len(pids), 1), "pids": ", ".join(map(str, pids)), "how": first["how"]}
    return Finding(
        CODE, "critical", "A DataLoader worker died", first["how"], evidence,
        _ADVICE.get(first["how"], _ELSE),
        ranks=ranks, location=loader[1].get("location") if loader else None,
    )  # fmt: skip


def _from_agent(event: Mapping[str, Any]) -> dict[str, Any]:
    how = str(event.get("reason") or "unknown")
    pids = [event["pid"]] if event.get("pid") is not None else []
    return {"rank": int(event.get("rank", 0)), "pids": pids, "how": _plain(how)}


def _from_torch(event: Mapping[str, Any]) -> dict[str, Any] | None:
    match = _TORCH_MESSAGE.search(str(event.get("message") or event.get("reason") or ""))
    if match is None:
        return None
    pids = [int(pid) for pid in re.findall(r"\d+", match["pids"])]
    return {"rank": int(event.get("rank", 0)), "pids": pids, "how": _plain(match["signal"] or "unknown")}


def _plain(how: str) -> str:
    """One word for what the kernel, Python and torch each say in their own."""
    for words, plain in ((("SIGKILL", "Killed"), "Killed"), (("SIGBUS", "Bus error"), "Bus error"),
                         (("SIGSEGV", "Segmentation fault"), "Segmentation fault")):  # fmt: skip
        if any(word in how for word in words):
            return plain
    return how.rstrip(". ")
