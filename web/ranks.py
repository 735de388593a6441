"""Ranks beside each other: REST reads for pages of runs with many ranks. See docs/api.md for the answers.

| path | answer |
| --- | --- |
| `api/runs/RUN/ranks?from=&to=&columns=&limit=&cells=&only=` | rank × time, and ranks' numbers, worst first |
| `api/runs/RUN/band?metric=&from=&to=&points=` | least, middle and greatest over ranks |
"""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, request
from werkzeug.exceptions import BadRequest, NotFound

from monitor.pipeline.ranks import ALL_CELLS, CELLS, COLUMNS, METRICS, POINTS, RANKS

from .api import integer_arg, reply, time_range
from .source import Source

#: What is sent when nobody says.
_COLUMNS, _RANKS, _POINTS = 120, 64, 300


def blueprint(source: Source) -> Blueprint:
    """The routes below `/api/runs/<run>`."""
    routes = Blueprint("ranks", __name__, url_prefix="/api/runs/<run>")

    @routes.get("/ranks")
    def ranks(run: str) -> Response:
        begin_s, end_s = time_range()
        columns, limit = (
            integer_arg("columns", _COLUMNS, 1, COLUMNS),
            integer_arg("limit", _RANKS, 1, RANKS),
        )
        asked = {"begin_s": begin_s, "end_s": end_s, "columns": columns, "limit": limit, "cells": _cells()}
        asked["only"] = integer_arg("only", 0, 0, 2**31) if request.args.get("only") else None
        return _found(run, source.ranks(run, **asked))

    @routes.get("/band")
    def band(run: str) -> Response:
        begin_s, end_s = time_range()
        metric = request.args.get("metric") or "step_ms"
        if metric not in METRICS:
            raise BadRequest(f"metric is one of {', '.join(METRICS)}")
        points = integer_arg("points", _POINTS, 1, POINTS)
        return _found(run, source.band(run, metric=metric, begin_s=begin_s, end_s=end_s, points=points))

    return routes


def _found(run: str, answer: dict[str, Any] | None) -> Response:
    if answer is None:
        raise NotFound(f"no run is called {run[:128]!r}; see api/runs")
    return reply(answer)


def _cells() -> list[str]:
    """The matrices that are asked for; all when nobody says."""
    text = request.args.get("cells", "")
    names = [name for name in text.split(",") if name and name != "none"] if text else list(CELLS)
    if not set(names) <= set(ALL_CELLS):
        raise BadRequest(f"cells are some of {', '.join(ALL_CELLS)}, separated by commas, or none")
    return list(dict.fromkeys(names))
