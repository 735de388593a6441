"""Runs beside each other, and the distance of one to its baseline.

| path | answer |
| --- | --- |
| `api/compare?runs=A,B[,C]&align=step` | see `monitor.compare.side_by_side`; align is step or time |
| `api/runs/RUN/baseline` | `{"baseline": {run, name} or null, "speed": {…} or null}`; null for itself |
"""

from __future__ import annotations

from flask import Blueprint, Response, request
from werkzeug.exceptions import BadRequest

from monitor import runs
from monitor.compare import distance, side_by_side
from monitor.diagnosis.core.messages import message
from monitor.runs import baselines

from .api import reply
from .source import Source

#: Most runs beside each other: six lines can be told apart in one chart.
MAX_RUNS = 6
ALIGN = ("step", "time")


def blueprint(source: Source) -> Blueprint:
    """The routes below `/api`."""
    routes = Blueprint("compare", __name__, url_prefix="/api")

    @routes.get("/compare")
    def compare() -> Response:
        names = list(dict.fromkeys(name for name in request.args.get("runs", "").split(",") if name))
        align = request.args.get("align") or ALIGN[0]
        if not 2 <= len(names) <= MAX_RUNS:
            raise BadRequest(message("runs are 2 to {most} ids of runs, separated by commas", most=MAX_RUNS))
        if align not in ALIGN:
            raise BadRequest(message("align is one of {names}", names=", ".join(ALIGN)))
        return reply(side_by_side([source.folder(name) for name in names], align))

    @routes.get("/runs/<run>/baseline")
    def baseline(run: str) -> Response:
        folder = source.folder(run)
        chosen = baselines.baselines(folder.parent).get(runs.summary(folder)["project"])
        if chosen is None or not source.has(chosen):
            return reply({"baseline": None, "speed": None})
        other = source.folder(chosen)
        head = {"run": other.name, "name": runs.summary(other)["name"]}
        return reply({"baseline": head, "speed": None if other == folder else distance(other, folder)})

    return routes
