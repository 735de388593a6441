"""Charts as inline SVG: lines with their band, and one stacked bar. Text in, text out; colours are classes.

The page's style sheet gives the classes `s0` to `s5` and `p-PHASE` their colours, so that both themes and
paper have their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from monitor.exports.language import Words

#: Size of a chart in its own units; the page scales it.
WIDTH, HEIGHT = 440, 160
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 8, 24
#: Lines of one chart that can be told apart by colour and dash.
MAX_LINES = 6

Value = float | None


@dataclass(frozen=True)
class Line:
    """One metric of a chart, a value a point; null where it was not measured.

    Attributes:
        label: for the legend.
        t_s: each point's time, in seconds.
        mean, low, high: mean, minimum and maximum of each point's rows.
    """

    label: str
    t_s: Sequence[float]
    mean: Sequence[Value]
    low: Sequence[Value] = ()
    high: Sequence[Value] = ()

    @property
    def measured(self) -> bool:
        """Whether it has a value at all."""
        return any(_known(value) for value in self.mean)


@dataclass(frozen=True)
class _Frame:
    """Where a time and a value lie."""

    t0: float
    t1: float
    y0: float
    y1: float

    def x(self, t: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (t - self.t0) / (self.t1 - self.t0)

    def y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * (value - self.y0) / (self.y1 - self.y0)


def chart(title: str, unit: str, lines: Sequence[Line], words: Words | None = None) -> str:
    """Lines over time, with a legend where there are several; "" where nothing was measured.

    Title, unit and labels are in the language of `words` already (English where none is given).
    """
    shown = [line for line in lines if line.measured][:MAX_LINES]
    if not shown:
        return ""
    frame = _frame(shown)
    drawn = [_grid(frame), *(_line(frame, line, i) for i, line in enumerate(shown))]
    words = words or Words()
    spoken = escape(f"{title}: {'; '.join(_label(line, unit, words) for line in shown)}")
    return (
        f"<figure><figcaption>{escape(_titled(title, unit))}{_legend(shown)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{spoken}">{"".join(drawn)}</svg>'
        "</figure>"
    )


def bar(shares: Mapping[str, Value]) -> str:
    """Shares (0 to 1) as one stacked bar; "" where none is known."""
    parts, at = [], 0.0
    for name, share in shares.items():
        if _known(share) and share:
            part = f'<rect class="p-{escape(name)}" x="{at:.2f}" y="0" width="{share * 100:.2f}" height="8"/>'
            parts.append(part)
            at += share * 100
    if not parts:
        return ""
    drawn = "".join(parts)
    return f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """About `count` round numbers from `low` to `high`: 1, 2 or 5 times a power of ten apart."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """A number in few letters: 1.2k, 35M, 0.004."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.4g}{letter}"
    return f"{value:.4g}"


def _known(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _frame(lines: Sequence[Line]) -> _Frame:
    begin, end = min(line.t_s[0] for line in lines), max(line.t_s[-1] for line in lines)
    held = [v for line in lines for part in (line.mean, line.low, line.high) for v in part if _known(v)]
    low, high = min(0.0, *map(float, held)), max(map(float, held))  # type: ignore[arg-type]
    if not high > low:
        high = low + 1.0
    return _Frame(begin, end if end > begin else begin + 1.0, low, high + (high - low) * 0.05)


def _grid(frame: _Frame) -> str:
    out, right, bottom = [], WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for value in ticks(frame.y0, frame.y1):
        y = frame.y(value)
        out.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
        out.append(f'<text x="{_LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{short(value)}</text>')
    out += [
        f'<text x="{frame.x(t):.1f}" y="{HEIGHT - 7}" text-anchor="middle">{short(t)} s</text>'
        for t in ticks(frame.t0, frame.t1)
    ]
    return f'{"".join(out)}<path class="axis" d="M{_LEFT} {bottom}H{right}"/>'


def _titled(title: str, unit: str) -> str:
    return f"{title} ({unit})" if unit else title


def _line(frame: _Frame, line: Line, number: int) -> str:
    path, pen = [], "M"
    for t, value in zip(line.t_s, line.mean, strict=True):
        if value is None or not _known(value):
            pen = "M"  # a gap stays a gap
            continue
        path.append(f"{pen}{frame.x(t):.1f} {frame.y(value):.1f}")
        pen = "L"
    dots = "h.01" if len(path) == 1 else ""  # one point alone is drawn as a dot
    return f'{_band(frame, line, number)}<path class="line s{number}" d="{"".join(path)}{dots}"/>'


def _band(frame: _Frame, line: Line, number: int) -> str:
    """Between minimum and maximum, where they differ."""
    both = [
        (frame.x(t), frame.y(low), frame.y(high))
        for t, low, high in zip(line.t_s, line.low, line.high, strict=False)
        if low is not None and high is not None and _known(low) and _known(high)
    ]
    if len(both) < 2 or all(low == high for _, low, high in both):
        return ""
    there = "L".join(f"{x:.1f} {high:.1f}" for x, _, high in both)
    back = "L".join(f"{x:.1f} {low:.1f}" for x, low, _ in reversed(both))
    return f'<path class="band s{number}" d="M{there}L{back}Z"/>'


def _legend(lines: Sequence[Line]) -> str:
    if len(lines) < 2:
        return ""
    keys = "".join(
        f'<span><svg class="key" viewBox="0 0 22 6" aria-hidden="true"><path class="line s{i}" d="M0 3H22"/>'
        f"</svg> {escape(line.label)}</span>"
        for i, line in enumerate(lines)
    )
    return f'<span class="legend">{keys}</span>'


def _label(line: Line, unit: str, words: Words) -> str:
    known = [float(v) for v in line.mean if v is not None and _known(v)]
    first, last = short(known[0]), short(known[-1])
    return words.t(
        "{label} from {first} to {last} {unit}", label=line.label, first=first, last=last, unit=unit
    ).strip()
