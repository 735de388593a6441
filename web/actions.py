"""What a page may change: marks, baseline, delete and undo. All of it is said in POST requests.

| path | body | answer |
| --- | --- | --- |
| `api/runs/RUN/marks` | some of `tags`, `note`, `archived` | all three, as they are now |
| `api/runs/RUN/baseline` | `{"on": true}` or false | `{"project", "baseline"}`: the baseline's id, or null |
| `api/runs/RUN/delete` | `{}` | `{"run", "until_unix_s"}`: until when `restore` brings it back |
| `api/runs/RUN/restore` | `{}` | `{"run"}` |

Besides the viewer's token and the guard's look at Origin, a body must say that it is JSON: no form of another
site can send that without asking first. A run's name is looked for among the names that are there, and
never made into a path. A run that is not over cannot be deleted: 409.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flask import Blueprint, Response, request
from werkzeug.exceptions import BadRequest, Conflict, ServiceUnavailable, UnsupportedMediaType

from monitor import report, runs
from monitor.diagnosis.core.messages import message
from monitor.runs import baselines, marks, trash
from monitor.store.database import LOCKED
from monitor.strict_json import loads

from .api import refusal, reply
from .source import Source


def blueprint(source: Source) -> Blueprint:
    """The routes below `/api/runs/<run>`."""
    routes = Blueprint("actions", __name__, url_prefix="/api/runs/<run>")

    @routes.post("/marks")
    def mark(run: str) -> Response:
        try:
            return reply(marks.mark(source.folder(run), _body()))
        except marks.MarkError as error:
            raise BadRequest(error.args[0]) from None

    @routes.post("/baseline")
    def baseline(run: str) -> Response:
        on = _body().get("on")
        if not isinstance(on, bool):
            raise BadRequest("on is true or false")
        folder = source.folder(run)
        project = runs.summary(folder)["project"]
        baselines.set_baseline(folder.parent, project, folder.name if on else None)
        return reply({"project": project, "baseline": folder.name if on else None})

    @routes.post("/delete")
    def delete(run: str) -> Response:
        _body()
        folder = source.folder(run)
        if _goes_on(source, folder):
            raise Conflict(message("{run} is not over; end it first", run=folder.name))
        source.forget(folder.name)
        trash.empty(folder.parent)
        trash.delete(folder)
        return reply(next(gone for gone in trash.deleted(folder.parent) if gone["run"] == folder.name))

    @routes.post("/restore")
    def restore(run: str) -> Response:
        _body()
        return reply({"run": trash.restore(source.run_dir, run).name})

    @routes.errorhandler(trash.KeptError)
    def kept(error: trash.KeptError) -> Response:
        return refusal(error.args[0], Conflict.code)

    @routes.errorhandler(OSError)
    def unwritten(error: OSError) -> Response:
        return refusal(message("it cannot be written: {why}", why=error.strerror), ServiceUnavailable.code)

    return routes


def _goes_on(source: Source, folder: Path) -> bool:
    """Whether somebody still writes a run. Of one whose store cannot be read now, memory may know."""
    summary = runs.summary(folder)
    if summary["status"] != "unreadable":
        return summary["status"] not in report.OVER
    try:
        state = source.snapshot(folder.name)
    except Exception as error:  # noqa: BLE001  a damaged store; it must be possible to be rid of it
        return LOCKED in str(error)
    return state is not None and state["status"] not in report.OVER


def _body() -> dict[str, Any]:
    """The request's body: a JSON object."""
    if request.mimetype != "application/json":
        raise UnsupportedMediaType("the body is JSON: Content-Type: application/json")
    try:
        body = loads(request.get_data().decode("utf-8") or "{}")
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON") from None
    if not isinstance(body, dict):
        raise BadRequest("the body is a JSON object")
    return body
