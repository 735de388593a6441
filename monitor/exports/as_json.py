"""JSON: the report with what it was made from: meta, facts, and a chart's worth of every stream."""

from __future__ import annotations

from collections.abc import Iterator

from monitor import report
from monitor.exports.choice import Choice
from monitor.store import Store
from monitor.strict_json import dumps

#: Version of this form; it grows only by adding.
SCHEMA = 1
#: Most points of one stream.
POINTS = 600


def write(store: Store, choice: Choice) -> Iterator[bytes]:
    """`{"schema", "report", "meta", "facts", "series": {stream: {"t", "rows", "series"}}}`.

    The report is of the whole run; the series are of the choice's range (and stream, where it names one).
    """
    head = {"schema": SCHEMA, "report": report.build(store), "meta": store.meta(), "facts": store.facts()}
    yield _text(head)[:-1] + b',"series":{'
    names = [choice.stream] if choice.stream else list(store.streams())
    for index, name in enumerate(names):
        found = store.series(name, store.keys(name), choice.first_s, choice.last_s, POINTS)
        yield (b"," if index else b"") + _text(name) + b":" + _text(found)
    yield b"}}\n"


def _text(value: object) -> bytes:
    return dumps(value).encode()
