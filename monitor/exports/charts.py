"""The charts of a report (`panels.py` says which), and the store's points for each."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.exports.choice import Choice
from monitor.exports.language import Words
from monitor.exports.svg import MAX_LINES, Line, chart
from monitor.panels import drawn_by
from monitor.schema import BY_KEY
from monitor.store import Store

#: Points of a chart: more than its pixels on paper would tell apart.
POINTS = 300
#: Charts of the user's own numbers at most.
MAX_OWN = 12


def charts(store: Store, choice: Choice) -> Iterator[str]:
    """Every chart of a run that has something to show, as HTML. Of many ranks or devices, the first six.

    A name that the training made up stays as it is in every language.
    """
    words = Words(choice.language)
    streams = sorted(store.streams(), key=_natural)
    for panel in drawn_by("report"):
        keys = tuple(series.key for series in panel.series)
        kind = _kind(keys[0])
        named = [name for name in streams if name.split("/")[0] == kind][:MAX_LINES]
        if kind == "rank" and len(named) < 2:
            continue
        if named:
            yield _panel(store, choice, words, (words.t(panel.title), words.word(panel.unit)), named, keys)
    for name in [name for name in streams if name.startswith("user/")][:1]:
        for key in store.keys(name)[:MAX_OWN]:
            yield _panel(store, choice, words, (key, ""), [name], (key,))


def _panel(
    store: Store,
    choice: Choice,
    words: Words,
    head: tuple[str, str],
    streams: list[str],
    keys: tuple[str, ...],
) -> str:
    lines = []
    for name in streams:
        curve = store.series(name, list(keys), choice.first_s, choice.last_s, POINTS)
        for key in keys:
            points = curve["series"][key]
            label = _label(key, words) if len(streams) == 1 else name
            lines.append(Line(label, curve["t"], points["mean"], points["min"], points["max"]))
    return chart(*head, lines, words)


def _kind(key: str) -> str:
    """The kind of stream that carries a metric."""
    origin = BY_KEY[key].origin
    return "rank" if origin == "step" else origin


def _label(key: str, words: Words) -> str:
    return words.word(BY_KEY[key].title) if key in BY_KEY else key


def _natural(name: str) -> list[tuple[int, str]]:
    """rank/2 comes before rank/10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in name.split("/")]
