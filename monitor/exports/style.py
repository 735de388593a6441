"""The report page's style sheet: both themes by the reader's system, and paper."""

from __future__ import annotations

from monitor.schema import PHASES

#: Okabe and Ito's colours (light ground, dark ground), which stay apart for colour-blind eyes.
_ORANGE, _SKY, _GREEN = ("#e69f00", "#e69f00"), ("#56b4e9", "#56b4e9"), ("#009e73", "#1db78c")
_YELLOW, _BLUE = ("#f0e442", "#f0e442"), ("#0072b2", "#3f9bd8")
_VERMILLION, _PURPLE = ("#d55e00", "#ea7a2b"), ("#cc79a7", "#cc79a7")
_INK, _GREY = ("#3b4048", "#e6e9ee"), ("#a9afb8", "#6d7683")

#: As on the dashboard.
_PHASES = dict(
    zip(
        PHASES,
        (_ORANGE, _YELLOW, _SKY, _BLUE, _GREEN, _PURPLE, _VERMILLION, _INK, _GREY),
        strict=True,
    )
)
#: Colour and dash of each line, so that they stay apart without colour too.
_LINES = (
    (_BLUE, "none"),
    (_VERMILLION, "5 3"),
    (_GREEN, "1.5 2.5"),
    (_PURPLE, "8 3 2 3"),
    (_ORANGE, "12 3"),
    (_SKY, "3 3"),
)
_LIGHT = (
    "--ground:#fff;--text:#1b1e22;--soft:#565d67;--grid:#e6e6e1;--sunken:#f4f4f1;"
    "--critical:#b3261e;--warning:#8a5300;--info:#0a6fb8"
)
_DARK = (
    "--ground:#0d1014;--text:#e7eaee;--soft:#a0a9b5;--grid:#2b313a;--sunken:#15191f;"
    "--critical:#ff8078;--warning:#efb44c;--info:#6cb6ff"
)


def _colours(dark: bool) -> str:
    """Every colour as a variable, of one theme."""
    named = [f"--{phase}:{pair[dark]}" for phase, pair in _PHASES.items()]
    named += [f"--s{i}:{pair[dark]}" for i, (pair, _) in enumerate(_LINES)]
    return ";".join([_DARK if dark else _LIGHT, *named])


_BASE = """
*{box-sizing:border-box}
html{color-scheme:light dark;background:var(--ground);color:var(--text);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Noto Sans CJK SC",sans-serif}
body{max-width:60rem;margin:0 auto;padding:2rem 1.25rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:0}
.id,.cause,footer,.none,figcaption,th{color:var(--soft)}
.id,code,pre{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.85em}
.verdict{font-size:1.2rem;font-weight:600}
p{margin:.35rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
th,td{text-align:left;vertical-align:top;padding:.15rem .75rem .15rem 0;border-bottom:1px solid var(--grid);
overflow-wrap:anywhere}
th{font-weight:400;width:16rem}
pre{background:var(--sunken);padding:.6rem .8rem;border-radius:6px;white-space:pre-wrap;
overflow-wrap:anywhere}
article{border-left:3px solid var(--soft);padding-left:.9rem;margin:1.1rem 0;break-inside:avoid}
.critical{border-color:var(--critical)}.warning{border-color:var(--warning)}.info{border-color:var(--info)}
span.critical{color:var(--critical)}span.warning{color:var(--warning)}span.info{color:var(--info)}
figure{margin:0;break-inside:avoid}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(24rem,100%),1fr));gap:1.25rem}
figcaption{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;color:var(--text)}
.legend{display:flex;flex-wrap:wrap;gap:.25rem .9rem;color:var(--soft)}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--soft);font-size:11px}
svg.bar{height:1.6rem}svg.key{display:inline-block;width:1.4em;height:.7em}
.grid,.axis{stroke:var(--grid);fill:none}
.line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
.band{stroke:none;opacity:.18}
.shares{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem}
.facts table{font-size:.85em}
footer{margin-top:2rem;font-size:.85em}
@media(max-width:34rem){th{width:9rem}}
@page{margin:15mm}
"""

_LINE_RULES = "\n".join(
    f".line.s{i}{{stroke:var(--s{i});stroke-dasharray:{dash}}}.band.s{i}{{fill:var(--s{i})}}"
    for i, (_, dash) in enumerate(_LINES)
)
_PHASE_RULES = "\n".join(f".p-{phase}{{fill:var(--{phase})}}" for phase in _PHASES)

#: Paper is light whatever the reader's theme.
STYLE = (
    f":root{{{_colours(False)}}}\n"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{_colours(True)}}}}}"
    f"{_BASE}{_LINE_RULES}\n{_PHASE_RULES}\n"
    "@media print{html{color-scheme:light}body{max-width:none;padding:0}*{print-color-adjust:exact}}"
)
