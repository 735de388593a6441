"""The keyword options of `attach` and `run`, and the environment variables that stand for them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monitor import state

#: Words that switch something off in the environment.
OFF = frozenset({"0", "off", "no", "false"})
#: Seconds between two samples of host and GPU.
DEFAULT_SAMPLE_S = 1.0
#: What may be done about a stall that lasts, and for how many seconds it must have been told before.
ON_STALL = ("dump", "abort")
DEFAULT_GRACE_S = 60.0


@dataclass(frozen=True)
class Options:
    """How one run is monitored.

    Attributes:
        name: what the run is called; None lets the script's name stand for it.
        run_dir: where runs are kept.
        hub: URL of a hub on another machine; None means this machine's own.
        dashboard: whether a web server may be started.
        sample_s: seconds between samples of host and GPU.
        stall_after_s: seconds without a step that count as a stall; None adapts to the run.
        on_stall: one of ON_STALL; None does nothing.
        on_stall_grace_s: seconds that a stall lasts after it was told before that is done.
        alerts: Apprise URLs.
        config: stored with the run; JSON-able.
    """

    name: str | None = None
    run_dir: Path = field(default_factory=state.run_dir)
    hub: str | None = None
    dashboard: bool = True
    sample_s: float = DEFAULT_SAMPLE_S
    stall_after_s: float | None = None
    on_stall: str | None = None
    on_stall_grace_s: float = DEFAULT_GRACE_S
    alerts: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)


def switched_off(env: Mapping[str, str] = os.environ) -> bool:
    """MONITOR=off: nothing is monitored at all."""
    return env.get("MONITOR", "").strip().lower() in OFF


def resolve(given: Mapping[str, Any], env: Mapping[str, str] = os.environ) -> Options:
    """Options from keywords first, the environment second, defaults last.

    Raises:
        TypeError: an option that does not exist.
        ValueError: a value that makes no sense.
    """
    unknown = sorted(set(given) - set(Options.__dataclass_fields__))
    if unknown:
        known = ", ".join(Options.__dataclass_fields__)
        raise TypeError(f"attach() has no option {', '.join(unknown)}; it has: {known}")

    def pick(name: str) -> Any:
        value = given.get(name)
        return env.get(f"MONITOR_{name.upper()}") or None if value is None else value

    grace_s = _seconds("on_stall_grace_s", pick("on_stall_grace_s"), least=0.0)
    return Options(
        name=_text(pick("name")),
        run_dir=state.run_dir(pick("run_dir")),
        hub=_text(pick("hub")),
        dashboard=_switch(pick("dashboard")),
        sample_s=_seconds("sample_s", pick("sample_s"), least=0.1) or DEFAULT_SAMPLE_S,
        stall_after_s=_seconds("stall_after_s", pick("stall_after_s"), least=0.5),
        on_stall=_on_stall(pick("on_stall")),
        on_stall_grace_s=DEFAULT_GRACE_S if grace_s is None else grace_s,
        alerts=_several(pick("alerts")),
        config=_config(pick("config")),
    )


def _on_stall(value: Any) -> str | None:
    word = str(value or "").strip().lower()
    if word in ("", *OFF):
        return None
    if word not in ON_STALL:
        raise ValueError(f"on_stall is {' or '.join(ON_STALL)}, or left out; got {value!r:.80}")
    return word


def _config(value: Any) -> dict[str, Any]:
    try:
        parsed = json.loads(value) if isinstance(value, str) else dict(value or {})
        if not isinstance(parsed, dict):
            raise TypeError
        # What JSON does not know (a path, a device, a type) is told by its text.
        plain: dict[str, Any] = json.loads(json.dumps(parsed, default=str))
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"config is a JSON object, or a dict of plain values; got {value!r:.80}") from None
    return plain


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _switch(value: Any) -> bool:
    if value is None:
        return True
    return value.strip().lower() not in OFF if isinstance(value, str) else bool(value)


def _seconds(name: str, value: Any, least: float) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = float("nan")
    if not least <= seconds < float("inf"):
        raise ValueError(f"{name} is a number of seconds, at least {least}; got {value!r}")
    return seconds


def _several(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(str(part).strip() for part in parts if str(part).strip())
