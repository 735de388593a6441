"""Events: every kind that an agent may send, and the fields of each, declared once.

What comes in at the hub's door is checked here. An event of an unknown kind is kept, since a newer agent
may send it; nobody acts on it. One with a value of the wrong type in a declared field is refused, by
itself. Fields that are not declared are kept as they are. Any declared field may be null: not known.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Event = Mapping[str, Any]
Type = Literal[
    "text", "number", "whole", "flag", "object", "list", "objects", "texts", "wholes", "code", "any"
]

#: Levels of lists and objects in one event; ours have five at most.
DEPTH = 32
#: Whole numbers that a float64, and so a page, holds exactly.
EXACT = 2**53
#: Numbers of ranks and steps begin here.
_FROM_ZERO = frozenset({"rank", "step"})

_KIND = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}\Z")
#: Half of a pair, which no UTF-8 text can hold. Python makes them of odd bytes in file names.
_SURROGATE = re.compile("[\ud800-\udfff]")

#: What every event may have: when it was (seconds since the run began), of which rank, after which step.
COMMON: Mapping[str, Type] = {"t_s": "number", "rank": "whole", "step": "whole"}

#: Kind -> its fields. docs/architecture.md says what each kind means.
KINDS: Mapping[str, Mapping[str, Type]] = {
    "run": {
        "name": "text", "host": "text", "started_unix_s": "number", "world_size": "whole", "argv": "list",
        "config": "object", "cwd": "text", "python": "text", "hub": "text", "alerts": "texts",
        "thread": "flag",
    },
    "agent": {"pid": "whole", "version": "text", "host_facts": "object"},
    "attach": {
        "pid": "whole", "started_unix_s": "number", "host": "text", "world_size": "whole", "argv": "list",
        "cwd": "text", "python": "text",
    },
    "fact": {"name": "text", "value": "any"},
    "epoch": {"epoch": "whole", "loader": "whole", "workers_started_ms": "number", "first_wait_ms": "number"},
    "save": {"ms": "number", "location": "text"},
    "clip": {"location": "text", "scaled": "flag"},
    "cuda": {"values": "object"},
    "oom": {
        "device": "whole", "message": "text", "location": "text", "caught": "flag", "requested_mb": "number",
        "free_mb": "number", "allocated_mb": "number", "reserved_mb": "number", "split_mb": "number",
        "peak_mb": "number", "reserved_cached_mb": "number", "largest_free_mb": "number",
        "segments": "whole", "categories": "object", "holders": "objects",
    },
    "nan_loss": {"value": "text", "location": "text", "module": "text"},
    "loss_finite": {},
    "log": {"values": "object"},
    "warn": {"text": "text", "gave_up": "flag"},
    "faults": {"signal": "whole", "fatal": "any", "fd": "whole", "file": "text", "main": "whole"},
    "exception": {"type": "text", "message": "text", "traceback": "text", "location": "text"},
    "end": {"code": "code", "reason": "text"},
    "rank_end": {
        "pid": "whole", "code": "code", "signal": "code", "reason": "text", "clean": "flag",
        "on_stall": "flag", "last_step": "whole", "last_phase": "text", "oom_kill": "flag",
        "orphans": "wholes", "location": "text", "function": "text", "trace": "text", "failed_s": "number",
    },
    "run_end": {},
    "stack": {"threads": "objects", "why": "text"},
    "worker_died": {"pid": "whole", "message": "text", "reason": "text"},
    "exhausted": {},
    "idle": {"ms": "number"},
    "flight": {"dump": "object"},
    "on_stall": {"action": "text", "for_s": "number", "file": "text", "text": "text"},
    "stall": {
        "phase": "text", "since_s": "number", "for_s": "number", "again": "flag", "threshold_s": "number",
        "usual_step_ms": "number", "cause": "text", "cause_code": "text", "location": "text",
        "function": "text", "source": "text", "threads": "objects", "why_no_stack": "text", "state": "text",
        "wchan": "text", "syscall": "text", "machine": "text", "workers": "objects", "waits_for": "wholes",
    },
    "stall_over": {"for_s": "number"},
    "other_stack": {"total": "whole", "frames": "objects"},
    "reduced": {"ranks": "wholes", "full": "wholes"},
    "live": {"phase": "text", "since_s": "number"},
    "dropped": {"records": "whole"},
    "no_gpu": {"why": "text"},
    "gpu_unread": {"gpu": "text", "call": "text", "error": "text"},
    "gpu_error": {"gpu": "text", "xid": "whole", "error": "text", "lost": "flag"},
}  # fmt: skip


@dataclass(frozen=True)
class Admitted:
    """What the check let in, in the order in which it came.

    Attributes:
        events: those to be kept.
        unknown: kinds of those among them that nobody knows, one entry an event.
        refused: (kind, why) of each event that was not let in; the kind is "" where it has none.
    """

    events: tuple[dict[str, Any], ...] = ()
    unknown: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()


#: Nothing was refused and nothing unknown.
ALL = Admitted()


def admit(events: Iterable[Any]) -> Admitted:
    """Check events as they come in. Never raises."""
    kept, unknown, refused = [], [], []
    for event in events:
        why = wrong(event)
        if why is not None:
            refused.append((_kind_of(event), why))
            continue
        kept.append(_encodable(event))
        if event["kind"] not in KINDS:
            unknown.append(event["kind"])
    return Admitted(tuple(kept), tuple(unknown), tuple(refused))


def wrong(event: Any) -> str | None:
    """Why an event is refused, in a few words; None for one that is sound, of a known kind or not."""
    if not isinstance(event, dict):
        return "it is no object"
    if not _kind_of(event):
        return "its kind is no name"
    if not _number(event.get("t_s")):
        return "t_s is no number"
    if _deep(event):
        return f"more than {DEPTH} levels of lists and objects"
    for name, kind in {**COMMON, **KINDS.get(event["kind"], {})}.items():
        value = event.get(name)
        if value is not None and not _CHECKS[kind](value):
            return f"{name} is no {kind}"
        if name in _FROM_ZERO and value is not None and value < 0:
            return f"{name} is below zero"
    return None


def _kind_of(event: Any) -> str:
    kind = event.get("kind") if isinstance(event, dict) else None
    return kind if isinstance(kind, str) and _KIND.match(kind) else ""


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -EXACT <= value <= EXACT


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # JSON's whole numbers know no bound, a float does.
    return -sys.float_info.max <= value <= sys.float_info.max


def _code(value: Any) -> bool:
    """An exit status or a signal, by number or by name."""
    return _is_int(value) or _text(value)


def _list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(check, value))


def _object(value: Any) -> bool:
    return isinstance(value, Mapping)


_CHECKS: Mapping[Type, Callable[[Any], bool]] = {
    "text": _text,
    "number": _number,
    "whole": _is_int,
    "flag": _flag,
    "object": _object,
    "list": lambda value: isinstance(value, list | tuple),
    "objects": _list_of(_object),
    "texts": _list_of(_text),
    "wholes": _list_of(_is_int),
    "code": _code,
    "any": lambda _: True,
}


def _deep(value: Any) -> bool:
    """Whether it is nested deeper than DEPTH; without recursion, for it may be very deep."""
    level = [value]
    for _ in range(DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    inner = value.values() if isinstance(value, Mapping) else value
    return [one for one in inner if isinstance(one, Mapping | list | tuple)]


def _encodable(value: Any) -> Any:
    """The same value with every text such that UTF-8 can hold it."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(inner) for inner in value]
    return value
