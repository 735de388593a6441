"""Which charts a report has, and the store's points for each."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.exports.choice import Choice
from monitor.exports.language import Words
from monitor.exports.svg import MAX_LINES, Line, chart
from monitor.schema import BY_KEY
from monitor.store import Store

#: Points of a chart: more than its pixels on paper would tell apart.
POINTS = 300
#: Charts of the user's own numbers at most.
MAX_OWN = 12

#: (title, unit, kind of stream, keys as its lines). A kind that has one stream a rank or device shows one
#: line for each, of a chart's single key.
_PANELS = (
    ("Step time", "ms", "run", ("step_p50_ms", "step_p95_ms", "step_p99_ms")),
    ("Throughput", "steps/s", "run", ("steps_per_s",)),
    ("Share of time waiting for data", "", "run", ("data_share",)),
    ("Loss", "", "run", ("run_loss",)),
    ("Step time by rank", "ms", "rank", ("step_ms",)),
    ("Memory of the process tree", "MB", "proc", ("tree_pss_mb",)),
    ("Resident memory", "MB", "proc", ("rss_mb",)),
    ("CPU, main process", "cores", "proc", ("main_cpu",)),
    ("CPU, loader workers", "cores", "proc", ("workers_cpu",)),
    ("GPU utilisation", "%", "gpu", ("gpu_util",)),
    ("GPU memory", "MB", "gpu", ("gpu_memory_used_mb",)),
)


def charts(store: Store, choice: Choice) -> Iterator[str]:
    """Every chart of a run that has something to show, as HTML. Of many ranks or devices, the first six.

    A name that the training made up stays as it is in every language.
    """
    words = Words(choice.language)
    streams = sorted(store.streams(), key=_natural)
    for title, unit, kind, keys in _PANELS:
        named = [name for name in streams if name.split("/")[0] == kind][:MAX_LINES]
        if kind == "rank" and len(named) < 2:
            continue
        if named:
            yield _panel(store, choice, words, (words.t(title), words.word(unit)), named, keys)
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
        told = store.series(name, list(keys), choice.first_s, choice.last_s, POINTS)
        for key in keys:
            points = told["series"][key]
            label = _label(key, words) if len(streams) == 1 else name
            lines.append(Line(label, told["t"], points["mean"], points["min"], points["max"]))
    return chart(*head, lines, words)


def _label(key: str, words: Words) -> str:
    return words.word(BY_KEY[key].title) if key in BY_KEY else key


def _natural(name: str) -> list[tuple[int, str]]:
    """rank/2 comes before rank/10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in name.split("/")]
