"""The page, its files, and Plotly's bundle."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from flask import Blueprint, Response, redirect, render_template, request, send_file
from jinja2 import TemplateNotFound
from werkzeug.exceptions import Forbidden, NotFound, ServiceUnavailable

from monitor.exports import language

from . import assets, pack
from .api import reply
from .auth import Access, Refusals, cookie_name, query_token

#: Seconds a browser keeps its cookie.
COOKIE_S = 30 * 24 * 3600
#: Seconds a browser keeps a file whose address names its version.
FOR_EVER_S = 365 * 24 * 3600

#: Files that are put together when they are asked for.
_PACKS = {pack.SCRIPT: pack.script, pack.STYLE: pack.style}

#: Complete in itself: whoever sees it may load nothing else.
_SHUT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>torchvitals</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{font:16px/1.6 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem;
color:#1b1f24;background:#fff}code{background:#eef0f3;padding:.1em .35em;border-radius:4px}
@media(prefers-color-scheme:dark){body{color:#e6e8eb;background:#14171a}code{background:#262b31}}</style>
<h1>This dashboard is private</h1>
<p>%s Open it with the address that carries its token: <code>torchvitals serve</code> prints it, and so
does <code>torchvitals url</code> on the machine that runs the training.</p></html>"""


def blueprint(access: Access, refusals: Refusals, version: str) -> Blueprint:
    """The routes of the page, and the check that every route of the app is behind."""
    routes = Blueprint("pages", __name__)

    @routes.before_app_request
    def only_viewers() -> Any:
        if request.path == "/healthz" or access.may_view(request.environ):
            return None
        refusals.note("token")
        given = query_token(request.environ) is not None
        why = (
            "The token in this address is not (or no longer) valid."
            if given
            else "It takes a token to come in."
        )
        if request.path == "/":
            return Response(_SHUT % why, 403, mimetype="text/html")
        raise Forbidden(
            f"{why} Send the viewer's token as a Bearer token, as ?token=, or as the page's cookie."
        )

    @routes.get("/")
    def index() -> Any:
        given = query_token(request.environ)
        if given is None:
            return _page(version)
        if not access.tokens.opens_view(given):  # let in by a pass, say, which a cookie would outlast
            return redirect(_without_token(), 303)
        answer = _page(version) if _is_cross_site() else redirect(_without_token(), 303)
        return _with_cookie(answer, access)

    @routes.get("/static/<path:name>")
    def static(name: str) -> Response:
        return _static(name)

    @routes.get("/plotly.js")
    def plotly() -> Response:
        return _plotly()

    @routes.get("/healthz")
    def healthz() -> Response:
        return reply({"ok": True, "name": "torchvitals", "version": version})

    return routes


def _page(version: str) -> Response:
    bundle = assets.plotly()
    try:
        text = render_template(
            "index.html",
            version=version,
            plotly_version=bundle.version if bundle else "",
            languages=language.names(),
            script=f"{pack.SCRIPT}?v={pack.script().tag}",
            style=f"{pack.STYLE}?v={pack.style().tag}",
        )
    except (TemplateNotFound, pack.PackError):
        raise ServiceUnavailable("the page is not installed; install torchvitals again") from None
    answer = Response(text, mimetype="text/html")
    answer.headers["Cache-Control"] = "no-cache"
    return answer


def _without_token() -> str:
    """This page's address without the token. Relative, so that it holds behind any proxy."""
    kept = parse_qsl(request.query_string.decode("latin-1"), max_num_fields=100)
    query = urlencode([(name, value) for name, value in kept if name != "token"])
    address = f"{request.script_root}/" if request.script_root else "./"
    return f"{address}?{query}" if query else address


def _is_cross_site() -> bool:
    """Whether another site's link led here. The browser would then not send a Strict cookie along with
    the redirected request, so the page itself is the answer.
    """
    return request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")


def _with_cookie(answer: Any, access: Access) -> Any:
    """Without a path of its own the browser keeps a cookie to the folder that the page has for it: behind a
    proxy that says nothing of its prefix (a notebook server's) too, so that neighbours do not read it.
    """
    answer.set_cookie(
        cookie_name(request.environ),
        access.tokens.cookie,
        max_age=COOKIE_S,
        path=request.script_root or None,
        httponly=True,
        samesite="Strict",
        secure=request.is_secure,
    )
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _static(name: str) -> Response:
    if name in _PACKS:
        return _packed(_PACKS[name](), assets.TYPES[name[name.rindex(".") :]])
    path = assets.static_files().get(name)
    if path is None:
        raise NotFound("the page has no such file")
    return send_file(path, assets.TYPES[path.suffix], conditional=True, max_age=0)


def _packed(made: pack.Pack, kind: str) -> Response:
    zipped = bool(request.accept_encodings.quality("gzip"))
    answer = Response(made.compressed if zipped else made.text, mimetype=kind)
    if zipped:
        answer.headers["Content-Encoding"] = "gzip"
    answer.set_etag(f"{made.tag}-{'gz' if zipped else 'plain'}")
    answer.make_conditional(request)
    return _for_ever(answer, made.tag)


def _for_ever(answer: Response, tag: str) -> Response:
    """A browser keeps what it asked for by its version, and asks again for anything else."""
    answer.headers["Vary"] = "Accept-Encoding"
    named = request.args.get("v") == tag
    answer.headers["Cache-Control"] = f"private, max-age={FOR_EVER_S}, immutable" if named else "no-cache"
    return answer


def _plotly() -> Response:
    bundle = assets.plotly()
    if bundle is None:
        raise NotFound("charts need the plotly package on the hub: pip install plotly")
    packed = bundle.compressed() if request.accept_encodings.quality("gzip") else None
    path, kind = (packed, "gz") if packed else (bundle.path, "js")
    answer = send_file(
        path,
        assets.TYPES[".js"],
        conditional=True,
        etag=f"{bundle.tag}-{kind}",
        max_age=0,
        last_modified=None,
    )
    if packed:
        answer.headers["Content-Encoding"] = "gzip"
    return _for_ever(answer, bundle.version)
