"""HTML: a report on one page that needs nothing else: no script, no request, no font, no picture of others.

Everything that a training told us is escaped. The page forbids itself to load or run anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from html import escape
from typing import Any

from monitor import report
from monitor.exports import svg
from monitor.exports.charts import charts
from monitor.exports.choice import Choice
from monitor.exports.style import STYLE
from monitor.report.text import duration, number
from monitor.schema import PHASES
from monitor.store import Store

Report = Mapping[str, Any]

_MARKS = {"critical": "✖", "warning": "▲", "info": "●"}
_ORDER = ("critical", "warning", "info")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write(store: Store, choice: Choice) -> Iterator[bytes]:
    """The page. Its charts are of the choice's range, everything else of the whole run."""
    found = report.build(store)
    for part in (_head(found), _summary(found), _shares(found), _findings(found)):
        yield part.encode("utf-8", "replace")
    yield b'<section><h2>Over time</h2><div class="charts">'
    for drawn in charts(store, choice):
        yield drawn.encode("utf-8", "replace")
    yield f"</div></section>{_unchecked(found)}{_configuration(store)}{_foot(found)}".encode(
        "utf-8", "replace"
    )


def _head(found: Report) -> str:
    name = escape(str(found["name"]))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>'
        f'{name} – torchvitals</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><meta http-equiv="Content-Security-Policy" '
        f'content="{_POLICY}"><style>{STYLE}</style></head><body><header><h1>{name}</h1>'
        f'<p class="id">{escape(str(found["run"]))}</p></header><main>'
    )


def _summary(found: Report) -> str:
    verdict = (found.get("verdict") or {}).get("text")
    spoken = f'<p class="verdict">{escape(str(verdict))}</p>' if verdict else ""
    rates, step, memory = found["throughput"], found["step_ms"], found["memory"]
    rows = [
        ("Status", _status(found)),
        ("Started", _when(found.get("started_unix_s"))),
        ("Steps", f"{found['steps']:,}"),
        ("Duration", duration(found["duration_s"]) if found["duration_s"] is not None else None),
        ("Ranks", str(found["world_size"])),
        ("Steps per second", _number(rates["steps_per_s"])),
        ("Samples per second", _number(rates["samples_per_s"])),
        ("Tokens per second", _number(rates["tokens_per_s"])),
        ("Step time p50 / p95 / p99", " / ".join(_number(step[q]) or "–" for q in step) + " ms"),
        ("Memory", _number(memory["rss_mb"], " MB")),
        ("Records lost", f"{found['dropped_records']:,}"),
    ]
    return f"<section>{spoken}{_table(rows)}</section>"


def _status(found: Report) -> str:
    end = found["exit"] or {}
    reason = end.get("reason") or end.get("signal")
    if found["status"] in ("crashed", "killed") and reason:
        return f"{found['status']}: {reason}"
    return str(found["status"])


def _when(unix_s: Any) -> str | None:
    if not isinstance(unix_s, int | float):
        return None
    try:
        return datetime.fromtimestamp(unix_s, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):  # a damaged store, or a clock, told a time that is none
        return None


def _number(value: Any, unit: str = "") -> str | None:
    return None if value is None else f"{number(value)}{unit}"


def _table(rows: list[tuple[str, str | None]]) -> str:
    """What was not measured is said to be so, by a dash and a word for who cannot see it."""
    none = '<span class="none" aria-label="not measured">–</span>'
    cells = "".join(
        f"<tr><th scope=row>{escape(label)}</th><td>{none if value is None else escape(value)}</td></tr>"
        for label, value in rows
    )
    return f"<table>{cells}</table>"


def _shares(found: Report) -> str:
    shares = found["time_share"]
    drawn = svg.bar({phase: shares[phase] for phase in PHASES})
    if not drawn:
        return ""
    keys = "".join(
        f'<li><svg class="key" viewBox="0 0 6 6" aria-hidden="true">'
        f'<rect class="p-{phase}" width="6" height="6"/></svg> {phase} <b>{shares[phase]:.1%}</b></li>'
        for phase in PHASES
        if shares[phase]
    )
    return f'<section><h2>Where a step’s time goes</h2>{drawn}<ul class="shares">{keys}</ul></section>'


def _findings(found: Report) -> str:
    listed = sorted(found["findings"], key=_rank)
    items = "".join(map(_finding, listed)) or "<p>Nothing was found that holds this run back.</p>"
    return f"<section><h2>Findings</h2>{items}</section>"


def _rank(finding: Report) -> tuple[bool, int, float]:
    """As on the dashboard: those that stand, by severity, then by what their removal saves."""
    share = (finding.get("gain") or {}).get("share_of_step")
    severity = finding["severity"]
    place = _ORDER.index(severity) if severity in _ORDER else len(_ORDER)
    return finding.get("cleared_at_s") is not None, place, -(share or 0.0)


def _finding(finding: Report) -> str:
    severity = str(finding["severity"])
    over = " (over)" if finding.get("cleared_at_s") is not None else ""
    gain, where = finding.get("gain"), finding.get("location")
    parts = [
        f'<h3><span class="{escape(severity)}">{_MARKS.get(severity, "●")} {escape(severity)}{over}</span> '
        f"{escape(str(finding['title']))}</h3>",
        f'<p class="cause"><code>{escape(str(finding["code"]))}</code> {escape(str(finding["cause"]))}'
        + (f" at <code>{escape(str(where))}</code>" if where else "")
        + f"{_steps(finding)}</p>",
        f"<p>{escape(str(finding['advice']))}</p>" if finding.get("advice") else "",
        f"<pre>{escape(str(finding['snippet']))}</pre>" if finding.get("snippet") else "",
        f'<p class="gain">{gain["speedup"]:.2f} times as fast without it. {escape(str(gain["basis"]))}</p>'
        if gain
        else "",
        _table([(key.replace("_", " "), _evidence(value)) for key, value in finding["evidence"].items()]),
    ]
    return f'<article class="{escape(severity)}">{"".join(parts)}</article>'


def _steps(finding: Report) -> str:
    first, last = finding.get("first_step"), finding.get("last_step")
    return "" if first is None or last is None else f", steps {first} to {last}"


def _evidence(value: Any) -> str | None:
    if isinstance(value, float):
        return number(value)
    return None if value is None else str(value)


def _unchecked(found: Report) -> str:
    rows = "".join(
        f"<tr><th scope=row><code>{escape(str(item['code']))}</code></th>"
        f"<td>{escape(str(item['why']))}</td></tr>"
        for item in found["not_checked"]
    )
    return f"<section><h2>Not checked</h2><table>{rows}</table></section>" if rows else ""


def _configuration(store: Store) -> str:
    meta = store.meta()
    told = {**(meta.get("config") or {}), "argv": " ".join(map(str, meta.get("argv") or []))}
    rows = [(str(key), str(value)) for key, value in told.items() if value not in ("", None)]
    for scope, facts in sorted(store.facts().items()):
        rows += [(f"{scope} {name}", _flat(value)) for name, value in sorted(facts.items())]
    return f'<section class="facts"><h2>Configuration and facts</h2>{_table(list(rows))}</section>'


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={item}" for key, item in value.items() if item is not None)
    return str(value)


def _foot(found: Report) -> str:
    return f"</main><footer>torchvitals report of {escape(str(found['run']))}</footer></body></html>\n"
