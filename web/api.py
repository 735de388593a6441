"""REST reads. Every answer is JSON, errors too: `{"error": "what is wrong"}` with 400, 403, 404 or 413;
beside it `i18n` (see `monitor.diagnosis.core.messages`) where the page can say it in another language.

| path | answer |
| --- | --- |
| `api/runs` | `{"runs": […], "trash": […]}`, newest first; trash: deleted runs that can be brought back |
| `api/runs?live=1` | `{"runs": […]}`: only those that go on, which is quick beside hundreds that are over |
| `api/runs/RUN` | the run's present state, with `meta` (the schema is in it), `facts` and `checks` (codes) |
| `api/runs/RUN/report` | the report of the contract |
| `api/runs/RUN/series?stream=&keys=a,b&from=&to=&points=` | min, max, mean of each key, at most `points` |
| `api/runs/RUN/events?after=&limit=&kinds=&newest=1` | `{"events": […]}` after id `after`, or the newest |
| `api/runs/RUN/times?stream=&at=20,99` | `{"t_s": {"20": 1.4, "99": null}}`: when these rows (steps) ended |

`from` and `to` are seconds since the run began; either may be left out. A stream that has no rows (yet)
has no points; that is no error.
"""

from __future__ import annotations

import math
import re
from typing import Any

from flask import Blueprint, Response, request
from werkzeug.exceptions import BadRequest, NotFound

from monitor.diagnosis.core.doctor import discover
from monitor.diagnosis.core.messages import pair_of
from monitor.panels import with_panels
from monitor.store import Store
from monitor.strict_json import dumps

from .source import Source

#: Most points of one series, and what is sent when nobody says.
MAX_POINTS, POINTS = 2_000, 600
#: Most keys of one request.
MAX_KEYS = 64
#: Most events of one answer, and what is sent when nobody says.
MAX_EVENTS, EVENTS = 1_000, 200
#: Times beyond this many seconds (30,000 years) are a mistake.
_MAX_TIME_S = 1e12

#: Every check there is, whether it could run or not.
_CHECKS = [detector.code for detector in discover()]

_STREAM = re.compile(r"[a-z]{1,8}(/[A-Za-z0-9._-]{1,128}){0,2}\Z")
_ROW = re.compile(r"[0-9]{1,15}\Z")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}\Z")


def blueprint(source: Source) -> Blueprint:
    """The routes below `/api`."""
    routes = Blueprint("api", __name__, url_prefix="/api")

    @routes.get("/runs")
    def runs() -> Response:
        if integer_arg("live", 0, 0, 1):
            return reply({"runs": source.live()})
        return reply({"runs": source.runs(), "trash": source.trash()})

    @routes.get("/runs/<run>")
    def run(run: str) -> Response:
        state = source.snapshot(run)
        if state is None:
            raise NotFound(f"no run is called {run!r}; see api/runs")
        with source.store(run) as store:
            return reply({**state, "meta": _meta(store), "facts": store.facts(), "checks": _CHECKS})

    @routes.get("/runs/<run>/report")
    def report(run: str) -> Response:
        return reply(source.report(run))

    @routes.get("/runs/<run>/series")
    def series(run: str) -> Response:
        stream, keys = stream_of() or "run", _keys()
        first, last = time_range()
        points = integer_arg("points", POINTS, 1, MAX_POINTS)
        with source.store(run) as store:
            return reply(store.series(stream, keys, first, last, points))

    @routes.get("/runs/<run>/events")
    def events(run: str) -> Response:
        after = integer_arg("after", 0, 0, 2**53)
        limit = integer_arg("limit", EVENTS, 1, MAX_EVENTS)
        with source.store(run) as store:
            if integer_arg("newest", 0, 0, 1):
                return reply({"events": store.last_events(_kinds(), limit=limit)})
            return reply({"events": store.events(_kinds(), after=after, limit=limit)})

    @routes.get("/runs/<run>/times")
    def times(run: str) -> Response:
        stream, rows = stream_of() or "rank/0", _rows()
        with source.store(run) as store:
            found = {row: store.rows(stream, [], row, row)["t_s"] for row in rows}
        return reply({"t_s": {str(row): float(t_s[0]) if len(t_s) else None for row, t_s in found.items()}})

    return routes


def _meta(store: Store) -> dict[str, Any]:
    """A run's meta; a run of an older version has no charts in its schema, and gets ours."""
    meta = store.meta()
    return {**meta, "schema": with_panels(meta.get("schema") or {})}


def reply(value: Any, status: int = 200) -> Response:
    """A JSON answer."""
    return Response(dumps(value), status, mimetype="application/json")


def refusal(text: str, status: int) -> Response:
    """Why something is not done, for whoever asked: with its template where it was made by `message`."""
    pair = pair_of(text)
    return reply({"error": str(text)} if pair is None else {"error": str(text), "i18n": pair}, status)


def stream_of() -> str | None:
    """The stream that the request names; None where it names none. Raises BadRequest."""
    stream = request.args.get("stream")
    if stream is not None and not _STREAM.match(stream):
        raise BadRequest("stream is a name like run, rank/0, host/NAME")
    return stream


def _kinds() -> list[str] | None:
    """Kinds of events that the request names; None for all. Raises BadRequest."""
    kinds = [kind for kind in request.args.get("kinds", "").split(",") if kind]
    if len(kinds) > MAX_KEYS or not all(map(_KEY.match, kinds)):
        raise BadRequest(f"kinds are at most {MAX_KEYS} names, separated by commas")
    return kinds or None


def _rows() -> list[int]:
    """The row numbers that the request names. Raises BadRequest."""
    texts = [text for text in request.args.get("at", "").split(",") if text]
    if not 1 <= len(texts) <= MAX_KEYS or not all(map(_ROW.match, texts)):
        raise BadRequest(f"at is 1 to {MAX_KEYS} row numbers, separated by commas")
    return [int(text) for text in texts]


def _keys() -> list[str]:
    keys = [key for key in request.args.get("keys", "").split(",") if key]
    if not 1 <= len(keys) <= MAX_KEYS:
        raise BadRequest(f"keys are 1 to {MAX_KEYS} metric names, separated by commas")
    if not all(map(_KEY.match, keys)):
        raise BadRequest("a key is made of letters, digits, '_', '.', '/' and '-'")
    return list(dict.fromkeys(keys))


def time_range() -> tuple[float | None, float | None]:
    """`from` and `to`. Raises BadRequest."""
    first, last = time_of("from"), time_of("to")
    if first is not None and last is not None and first > last:
        raise BadRequest("from lies after to")
    return first, last


def time_of(name: str) -> float | None:
    """A time that the request names, in seconds since the run began. Raises BadRequest."""
    text = request.args.get(name, "")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not abs(seconds) <= _MAX_TIME_S:
        raise BadRequest(f"{name} is a time in seconds since the run began")
    return seconds


def integer_arg(name: str, default: int, least: int, most: int) -> int:
    """A whole number that was asked for, `default` where none was. Raises BadRequest."""
    text = request.args.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and least <= int(text) <= most):
        raise BadRequest(f"{name} is a whole number from {least} to {most}")
    return int(text)
