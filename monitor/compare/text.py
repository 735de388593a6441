"""Text: a comparison for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.compare.side import MOST_LOST
from monitor.diagnosis.core.quantities import number

#: Differences shown; the JSON has all.
SHOWN = 20
#: Phases below this many ms on both sides are left out.
LEAST_MS = 0.05
#: Share of time lost to others that is worth a line (as `speed` has it).
BUSY = 0.02

MARKS = {
    "confirmed": "✔", "less than promised": "▲", "refuted": "✖", "cannot tell": "?", "not followed": "·",
    "not checked": "·", "gone": "✔",
}  # fmt: skip

Found = Mapping[str, Any]


def lines(found: Found) -> list[str]:
    """The comparison, line by line."""
    out = [f"{found['baseline']['run']} → {found['candidate']['run']}", ""]
    out += [*_changed(found), "", *_speed(found["speed"])]
    out += [*_busy(found["speed"]), *_memory(found["memory"]), *_loss(found), *_phases(found["phases"])]
    if found["predictions"]:
        out += ["", "what the findings of the baseline promised:"]
        out += [_promise(row) for row in found["predictions"]]
    return out


def _changed(found: Found) -> list[str]:
    changed, edited = found["changed"], found["code"]["edited"]
    note = f" ({found['code']['name']} was edited)" if edited else ""
    if not changed:
        return [
            f"the script {found['code']['name']} was edited; nothing else that is recorded differs"
            if edited
            else "nothing that is recorded differs"
        ]
    if len(changed) == 1:
        return [f"exactly one thing differs: {_change(changed[0])}{note}"]
    head = f"{len(changed)} things differ, so no single one explains the rest{note}:"
    more = [f"  … and {len(changed) - SHOWN} more"] if len(changed) > SHOWN else []
    return [head, *(f"  {_change(change)}" for change in changed[:SHOWN]), *more]


def _change(change: Found) -> str:
    sentence = f"{change['label']} {_value(change['before'])} → {_value(change['after'])}"
    extra = [f"by {change['via']}"] if change["via"] else []
    extra += [f"{c['label']} {_value(c['before'])} → {_value(c['after'])}" for c in change["with"][:4]]
    return f"{sentence} ({', '.join(extra)})" if extra else sentence


def _value(value: Any) -> str:
    return "–" if value is None else str(value)


def _speed(speed: Found) -> list[str]:
    ratio = speed["speedup"]
    if ratio is None:
        return ["speed: unknown: one of the runs has no steps to compare"]
    before, after = number(speed["baseline_per_s"]), number(speed["candidate_per_s"])
    text = f"speed: {before} → {after} {speed['unit']}/s, {ratio:.2f} times"
    if speed["low"] is None:
        busy = max(speed["lost_share"]) >= MOST_LOST
        return [f"{text} ({'the machine was too busy' if busy else 'too few steps'} for an interval)"]
    text += f" (95 % interval {speed['low']:.2f} to {speed['high']:.2f})"
    word = {"no difference": "no difference that can be told from chance"}.get(
        speed["verdict"], speed["verdict"]
    )
    return [f"{text}: {word}"]


def _busy(speed: Found) -> list[str]:
    shares = dict(zip(("baseline", "candidate"), speed["lost_share"], strict=True))
    lost = [f"{share:.0%} of the {name}'s" for name, share in shares.items() if share >= BUSY]
    allowed = "" if speed["low"] is None else "; the interval allows for it"
    return [f"  other processes may have cost {' and '.join(lost)} time{allowed}"] if lost else []


def _memory(memory: Found) -> list[str]:
    titles = {"rss_mb": "memory", "gpu_memory_used_mb": "GPU memory", "cuda_allocated_mb": "CUDA allocated"}
    pairs = [(title, *memory[key]) for key, title in titles.items() if memory.get(key)]
    return [f"{t}: {a:,.0f} MB → {b:,.0f} MB" for t, a, b in pairs if a is not None and b is not None]


def _loss(found: Found) -> list[str]:
    at = found["loss_at"]
    if at is None:
        return []
    before, after = at["loss"]
    where = f"step {at['step']}" if "step" in at else f"{at['time_s']:.3g} s"
    return [f"loss at {where}: {before:.4g} → {after:.4g}"]


def _phases(phases: Found) -> list[str]:
    rows = [(name, *pair) for name, pair in phases.items() if None not in pair]
    return [f"  {n:<10} {a:9.2f} ms → {b:9.2f} ms" for n, a, b in rows if max(a, b) >= LEAST_MS]


def _promise(row: Found) -> str:
    text = (
        f"  {MARKS.get(row['verdict'], '·')} {row['verdict']}: {row['title']} ({row['code']}: {row['cause']})"
    )
    if row["promised"] is None:
        return text
    text += f": promised {row['promised']:.2f} times"
    if row["reached"] is not None:
        text += f", reached {row['reached']:.2f}"
    if row["together"]:
        text += f", together with {', '.join(row['together'])}"
    return text
