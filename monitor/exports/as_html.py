"""HTML: a report on one page that needs nothing else: no script, no request, no font, no picture of others.

Everything that a training told us is escaped. The page forbids itself to load or run anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from html import escape
from typing import Any

from monitor import report
from monitor.diagnosis.core.evidence import EvidenceRow, evidence_rows
from monitor.diagnosis.core.messages import pair_of
from monitor.diagnosis.core.quantities import duration, number
from monitor.diagnosis.core.ranking import ranked_forms
from monitor.exports import svg
from monitor.exports.charts import charts
from monitor.exports.choice import Choice
from monitor.exports.language import Words
from monitor.exports.style import STYLE
from monitor.schema import PHASES
from monitor.store import Store

Report = Mapping[str, Any]

_MARKS = {"critical": "✖", "warning": "▲", "info": "●"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write(store: Store, choice: Choice) -> Iterator[bytes]:
    """The page. Its charts are of the choice's range, everything else of the whole run."""
    found, words = report.build(store, pairs=True), Words(choice.language)
    for part in (_head(found, words), _summary(found, words), _shares(found, words), _findings(found, words)):
        yield _bytes(part)
    yield _bytes(f'<section><h2>{words.t("Over time")}</h2><div class="charts">')
    for drawn in charts(store, choice):
        yield _bytes(drawn)
    yield _bytes(
        f"</div></section>{_unchecked(found, words)}{_configuration(store, words)}{_foot(found, words)}"
    )


def _bytes(part: str) -> bytes:
    return part.encode("utf-8", "replace")


def _head(found: Report, words: Words) -> str:
    name = escape(str(found["name"]))
    return (
        f'<!doctype html><html lang="{words.code}"><head><meta charset="utf-8"><title>'
        f'{name} – torchvitals</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><meta http-equiv="Content-Security-Policy" '
        f'content="{_POLICY}"><style>{STYLE}</style></head><body><header><h1>{name}</h1>'
        f'<p class="id">{escape(str(found["run"]))}</p></header><main>'
    )


def _summary(found: Report, words: Words) -> str:
    verdict = found.get("verdict") or {}
    verdict_text = words.translate(verdict.get("text") or "", verdict.get("i18n"))
    spoken = f'<p class="verdict">{escape(verdict_text)}</p>' if verdict_text else ""
    rates, step, memory = found["throughput"], found["step_ms"], found["memory"]
    rows = [
        (words.t("Status"), _status(found, words)),
        (words.t("Started"), _when(found.get("started_unix_s"))),
        (words.t("Steps"), None if found["steps"] is None else f"{found['steps']:,}"),
        (words.t("Duration"), duration(found["duration_s"]) if found["duration_s"] is not None else None),
        (words.t("Number of ranks"), str(found["world_size"])),
        (words.t("Steps per second"), _number(rates["steps_per_s"])),
        (words.t("Samples per second"), _number(rates["samples_per_s"])),
        (words.t("Tokens per second"), _number(rates["tokens_per_s"])),
        (words.t("Step time p50 / p95 / p99"), " / ".join(_number(step[q]) or "–" for q in step) + " ms"),
        (words.t("Memory"), _number(memory["rss_mb"], " MB")),
        (words.t("Records lost"), f"{found['dropped_records']:,}"),
    ]
    return f"<section>{spoken}{_table(rows, words)}</section>"


def _status(found: Report, words: Words) -> str:
    status, end = words.word(found["status"]), found["exit"] or {}
    reason = end.get("reason") or end.get("signal")
    if found["status"] in ("crashed", "killed") and reason:
        return words.t("{status}: {reason}", status=status, reason=str(reason))
    return status


def _when(unix_s: Any) -> str | None:
    if not isinstance(unix_s, int | float):
        return None
    try:
        return datetime.fromtimestamp(unix_s, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):  # a damaged store, or a clock, told a time that is none
        return None


def _number(value: Any, unit: str = "") -> str | None:
    return None if value is None else f"{number(value)}{unit}"


def _table(rows: Iterable[tuple[str, str | None]], words: Words) -> str:
    """What was not measured is said to be so, by a dash and a word for who cannot see it."""
    none = f'<span class="none" aria-label="{words.t("not measured")}">–</span>'
    cells = "".join(
        f"<tr><th scope=row>{escape(label)}</th><td>{none if value is None else escape(value)}</td></tr>"
        for label, value in rows
    )
    return f"<table>{cells}</table>"


def _shares(found: Report, words: Words) -> str:
    shares = found["time_share"]
    drawn = svg.bar({phase: shares[phase] for phase in PHASES})
    if not drawn:
        return ""
    keys = "".join(
        f'<li><svg class="key" viewBox="0 0 6 6" aria-hidden="true"><rect class="p-{phase}" width="6" '
        f'height="6"/></svg> {escape(words.word(phase))} <b>{shares[phase]:.1%}</b></li>'
        for phase in PHASES
        if shares[phase]
    )
    head = words.t("Where a step's time goes")
    return f'<section><h2>{escape(head)}</h2>{drawn}<ul class="shares">{keys}</ul></section>'


def _findings(found: Report, words: Words) -> str:
    nothing = words.t("Nothing was found that holds this run back.")
    items = [_finding(finding, words) for finding in ranked_forms(found["findings"])]
    return f"<section><h2>{words.t('Findings')}</h2>{''.join(items) or f'<p>{nothing}</p>'}</section>"


def _finding(finding: Report, words: Words) -> str:
    severity, pairs = str(finding["severity"]), finding.get("i18n") or {}
    title, advice = (words.translate(finding.get(key) or "", pairs.get(key)) for key in ("title", "advice"))
    over = words.t(" (over)") if finding.get("cleared_at_s") is not None else ""
    parts = [
        f'<h3><span class="{escape(severity)}">{_MARKS.get(severity, "●")} '
        f"{escape(words.word(severity.capitalize()) + over)}</span> {escape(title)}</h3>",
        _details(finding, words.translate(finding["cause"] or "", pairs.get("cause")), words),
        f"<p>{escape(advice)}</p>" if advice else "",
        f"<pre>{escape(str(finding['snippet']))}</pre>" if finding.get("snippet") else "",
        _gain(finding.get("gain"), pairs.get("basis"), words),
        _table([_shown(row, words) for row in evidence_rows(finding["evidence"])], words),
    ]
    return f'<article class="{escape(severity)}">{"".join(parts)}</article>'


def _shown(row: EvidenceRow, words: Words) -> tuple[str, str | None]:
    """Label and value of one entry in the report's language; None where it was not measured."""
    label = words.translate(row.label, pair_of(row.label))
    if row.value is None:
        return label, None
    gap = " " if row.unit[:1].strip("/") else ""
    return label, f"{words.word(row.value)}{gap}{words.word(row.unit)}"


def _details(finding: Report, cause: str, words: Words) -> str:
    """The finding's code, its cause, and where and when it was seen."""
    where = finding.get("location")
    parts = [
        f"<code>{escape(str(finding['code']))}</code>",
        escape(cause),
        f"<code>{escape(str(where))}</code>" if where else "",
        _steps(finding, words),
    ]
    return f'<p class="cause">{" · ".join(filter(None, parts))}</p>'


def _steps(finding: Report, words: Words) -> str:
    first, last = finding.get("first_step"), finding.get("last_step")
    if first is None or last is None:
        return ""
    if first == last:
        return words.t("step {step}", step=str(first))
    return words.t("steps {first}–{last}", first=str(first), last=str(last))


def _gain(gain: Report | None, basis: Any, words: Words) -> str:
    if not gain:
        return ""
    promise = words.t("{times} times as fast without it.", times=f"{gain['speedup']:.2f}")
    return f'<p class="gain">{escape(promise)} {escape(words.translate(gain["basis"] or "", basis))}</p>'


def _unchecked(found: Report, words: Words) -> str:
    rows = "".join(
        f"<tr><th scope=row><code>{escape(str(item['code']))}</code></th>"
        f"<td>{escape(words.translate(item['why'], item.get('i18n')))}</td></tr>"
        for item in found["not_checked"]
    )
    return f"<section><h2>{words.t('Not checked')}</h2><table>{rows}</table></section>" if rows else ""


def _configuration(store: Store, words: Words) -> str:
    meta = store.meta()
    config = {**(meta.get("config") or {}), "argv": " ".join(map(str, meta.get("argv") or []))}
    rows = [(str(key), str(value)) for key, value in config.items() if value not in ("", None)]
    for scope, facts in sorted(store.facts().items()):
        rows += [(f"{scope} {name}", _flat(value)) for name, value in sorted(facts.items())]
    head = words.t("Configuration and facts")
    return f'<section class="facts"><h2>{head}</h2>{_table(rows, words)}</section>'


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={item}" for key, item in value.items() if item is not None)
    return str(value)


def _foot(found: Report, words: Words) -> str:
    footer = words.t("torchvitals report of {run}", run=str(found["run"]))
    return f"</main><footer>{escape(footer)}</footer></body></html>\n"
