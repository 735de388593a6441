"""Downloads: a run as a file. Sent in pieces as they are read, so the hub holds none whole.

| path below `api` | answer |
| --- | --- |
| `exports` | `{"formats": […]}`: what there is, and what to install for what does not work yet |
| `runs/RUN/export.csv`, `export.parquet` | `?stream=&from=&to=`: a stream's rows (`rank/0` if none named) |
| `runs/RUN/export.json`, `export.perfetto.json` | `?from=&to=` |
| `runs/RUN/export.html` | `?from=&to=&language=`: `en` (if none named) or `zh-CN` |

`from` and `to` are seconds since the run began. A form that lacks its library answers 501 and says what to
install; a stream that the run does not have is 404.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import werkzeug.exceptions as wrong
from flask import Blueprint, Response, request

from monitor.exports import (
    FORMATS,
    LANGUAGES,
    Choice,
    Format,
    MissingExtraError,
    NoSuchStreamError,
    pieces,
)

from .api import reply, stream_of, time_range
from .source import Source

_BY_SUFFIX = {form.suffix: form for form in FORMATS.values()}
#: What a file's name keeps of a run's.
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


def blueprint(source: Source) -> Blueprint:
    """The routes of the downloads."""
    routes = Blueprint("exports", __name__, url_prefix="/api")

    @routes.get("/exports")
    def formats() -> Response:
        return reply({"formats": [_described(form) for form in FORMATS.values()]})

    @routes.get("/runs/<run>/export.<suffix>")
    def export(run: str, suffix: str) -> Response:
        form = _BY_SUFFIX.get(suffix)
        if form is None:
            raise wrong.NotFound(f"no such export; there are {', '.join(_BY_SUFFIX)}")
        body = _begun(_read(source, run, form, _choice()))
        answer = Response(body, mimetype=None, content_type=form.media_type)
        name = _UNFIT.sub("_", run)
        answer.headers["Content-Disposition"] = f'attachment; filename="{name}.{form.suffix}"'
        return answer

    return routes


def _described(form: Format) -> dict[str, object]:
    return {
        "format": form.name,
        "file": f"export.{form.suffix}",
        "what": form.what,
        "stream": form.streams,
        "language": form.speaks,
        "install": form.missing(),
    }


def _choice() -> Choice:
    return Choice(stream_of(), *time_range(), _language())


def _language() -> str:
    """The language that the request names, English where it names none. Raises BadRequest."""
    language = request.args.get("language") or LANGUAGES[0]
    if language not in LANGUAGES:
        raise wrong.BadRequest(f"language is one of {', '.join(LANGUAGES)}")
    return language


def _read(source: Source, run: str, form: Format, choice: Choice) -> Iterator[bytes]:
    """The store stays open while its pieces are sent, and no longer."""
    with source.store(run) as store:
        try:
            yield from pieces(form, store, choice)
        except MissingExtraError as error:
            raise wrong.NotImplemented(str(error)) from None
        except NoSuchStreamError as error:
            raise wrong.NotFound(str(error)) from None


def _begun(body: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces, the first of them read: what cannot be had is an error, not half a file."""
    first = next(body, b"")

    def all_of_it() -> Iterator[bytes]:
        yield first
        yield from body

    return all_of_it()
