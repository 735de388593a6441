"""Report: a run → the report of the contract. Every key is there; what cannot be known is null."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from monitor.report.contract import without_templates
from monitor.report.liveness import lost
from monitor.report.measure import Measures, measure
from monitor.report.text import summary, text
from monitor.store import FILE_NAME, Store, StoreError
from monitor.strict_json import plain

__all__ = ["LIVE", "OVER", "StoreError", "build", "lost", "nothing", "outcome", "summary", "text", "wait"]

#: Version of the report's form.
SCHEMA = 1
#: Status of a run that is over.
OVER = frozenset({"finished", "crashed", "killed"})
#: Statuses of a run that goes on.
LIVE = frozenset({"running", "stalled"})
#: Notices told at most, the newest.
NOTICES = 20
#: Between two looks at a run that is about to end.
_POLL_S = 0.1


def build(run: str | Path | Store, *, pairs: bool = False) -> dict[str, Any]:
    """The report of a run, from its folder or its open store. See CONTRACT.md for the form.

    `exit` has `last_step` and `last_phase` besides; `notices` are the monitor's own remarks,
    in lines. For several ranks, shares and quantiles are means over ranks, samples and memory sums, `steps`
    the most that any rank took. Of `reduced_ranks` their hosts sent averages only: shares and quantiles are
    of the others. `rss_mb` is the peak of the process tree's PSS where that was measured, else of the main
    process's resident memory; `cuda_allocated_mb` and `cuda_reserved_mb` are peaks too, `cuda_fragmentation`
    the share of what was reserved that lay free in split blocks. `samples` has the phases of `time_share`
    that were told from sampled stacks, and how many.

    Args:
        pairs: leave what was said its `i18n` (see `diagnosis.say`), for a page in another language.

    Raises:
        StoreError: there is no such run, or its store cannot be read.
    """
    with _opened(run) as store:
        meta = store.meta()
        status, end = outcome(store, meta)
        measures = measure(store)
        findings = store.findings()
        warnings = store.last_events(("warn",), NOTICES)
    form = plain if pairs else without_templates
    report = {
        "schema": SCHEMA,
        "run": meta.get("run"),
        "name": meta.get("name"),
        "status": status,
        "exit": end,
        "world_size": meta.get("world_size", 1),
        **_measured(measures),
        "findings": [form(finding) for finding in findings],
        "not_checked": [form(entry) for entry in meta.get("not_checked") or []],
        "dropped_records": measures.dropped_records,
        "reduced_ranks": measures.reduced_ranks,
        "micro_batches": measures.micro_batches,
        "samples": measures.samples,
        "started_unix_s": meta.get("started_unix_s"),
        "verdict": form(meta.get("verdict")),
        "notices": list(dict.fromkeys(str(event.get("text", "")) for event in warnings)),
    }
    result: dict[str, Any] = plain(report)
    return result


def outcome(store: Store, meta: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Status and `exit` as they are now. A run that was lost counts as killed, and says so."""
    status = str(meta.get("status") or "running")
    if status in OVER:
        return status, meta.get("exit")
    why = lost(meta, store.hosts())
    if why is None:
        return status, None
    return "killed", _exit(why)


def wait(folder: str | Path, within_s: float) -> dict[str, Any]:
    """The report once the run is over, or as it is after `within_s` seconds.

    Where nothing was recorded at all the report says so, with every value null.
    """
    store, until = Path(folder) / FILE_NAME, time.monotonic() + within_s
    while time.monotonic() < until:
        with contextlib.suppress(StoreError), Store(store) as opened:
            if opened.meta().get("status") in OVER:
                break
        time.sleep(_POLL_S)
    try:
        return build(folder)
    except StoreError as error:
        return nothing(Path(folder).name, str(error))


def nothing(run: str, why: str) -> dict[str, Any]:
    """The report of a run of which nothing was recorded: every value null, and `why` in its exit."""
    return {
        "schema": SCHEMA,
        "run": run,
        "name": run,
        "status": "killed",
        "exit": _exit(f"lost: nothing was recorded ({why})"),
        "world_size": 1,
        **_measured(Measures()),
        "findings": [],
        "not_checked": [],
        "dropped_records": 0,
        "reduced_ranks": 0,
        "micro_batches": None,
        "samples": {},
        "started_unix_s": None,
        "verdict": None,
        "notices": [],
    }


def _measured(measures: Measures) -> dict[str, Any]:
    return {
        "steps": measures.steps,
        "duration_s": measures.duration_s,
        "throughput": measures.throughput,
        "step_ms": measures.step_ms,
        "time_share": measures.time_share,
        "memory": measures.memory,
    }


def _exit(reason: str) -> dict[str, Any]:
    return {
        "code": None,
        "signal": None,
        "reason": reason,
        "rank": None,
        "last_step": None,
        "last_phase": None,
    }


@contextlib.contextmanager
def _opened(run: str | Path | Store) -> Iterator[Store]:
    if isinstance(run, Store):
        yield run
        return
    with Store(Path(run) / FILE_NAME) as store:
        yield store
