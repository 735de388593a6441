"""What the probe found out about a run's configuration, read with care: any of it may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from monitor.diagnosis.core.window import Rank, Window

Fact = Mapping[str, Any]


def fact(rank: Rank, name: str) -> Fact:
    """One fact; empty where the probe did not tell it."""
    value = rank.facts.get(name)
    return value if isinstance(value, Mapping) else {}


def facts_of(rank: Rank, group: str) -> list[Fact]:
    """All facts called `group/…`, in order of their names."""
    found = rank.facts_of(group)
    return [found[name] for name in sorted(found) if isinstance(found[name], Mapping)]


def ranks_where(window: Window, holds: Callable[[Rank], bool]) -> list[Rank]:
    """The ranks for which it holds, in order of number."""
    return [window.ranks[number] for number in sorted(window.ranks) if holds(window.ranks[number])]


def numbers(ranks: list[Rank]) -> tuple[int, ...]:
    """Their numbers."""
    return tuple(rank.rank for rank in ranks)


def half_autocast(rank: Rank) -> str | None:
    """The 16-bit type that autocast computes in, None where autocast is not used."""
    precision = fact(rank, "precision")
    kind = str(precision.get("autocast_dtype") or "")
    return kind if precision.get("autocast") and kind in ("float16", "bfloat16") else None


def on_gpu(model: Fact) -> bool:
    """Whether a model's parameters lie on a CUDA device."""
    return str(model.get("device") or "").startswith("cuda")


def lost_signals(window: Window) -> dict[str, str]:
    """Signals that some rank could not measure, and why; see `monitor.schema.SIGNALS`."""
    found: dict[str, str] = {}
    for number in sorted(window.ranks):
        for signal, why in fact(window.ranks[number], "signals_lost").items():
            found.setdefault(str(signal), str(why))
    return found
