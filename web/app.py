"""create_app: puts the doors together. Nothing here is global, so two hubs can live in one process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import flask
import flask_socketio
from werkzeug.exceptions import HTTPException
from werkzeug.middleware.proxy_fix import ProxyFix

from monitor.bridges.gauges import Sample
from monitor.runs import NoSuchRunError
from monitor.store import StoreError

from . import actions, api, assets, compare, exports, metrics, pages, ranks, socketio_compat
from .auth import Access, Refusals, Tokens, host_name, origin_name
from .frames import Frames
from .guard import MAX_BODY, Guard, HostGuard
from .ingest import Ingest
from .live import Live, open_sockets
from .source import Pipeline, Source

_log = logging.getLogger("monitor.web")

#: Where `services_of` finds them.
_EXTENSION = "torchvitals"


@dataclass(frozen=True)
class HubServices:
    """The open doors of one app.

    Attributes:
        live: the browsers'.
        ingest: the agents'.
        sockets: the Socket.IO server.
        samples: what `/metrics` tells, for a push.
    """

    live: Live
    ingest: Ingest
    sockets: flask_socketio.SocketIO
    samples: Callable[[], list[Sample]]

    @property
    def busy(self) -> bool:
        """Whether anybody is connected: an agent (a live run has one) or a viewer."""
        return bool(self.live.viewers or self.ingest.agents)

    def close(self) -> None:
        """Send everybody away. Agents keep what was not answered and come again."""
        self.live.publisher.close()
        socketio_compat.end_connections(self.sockets.server)


def create_app(
    pipeline: Pipeline,
    *,
    run_dir: Path,
    tokens: Tokens,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
    own_address: bool = False,
    proxy: bool = False,
    version: str = "",
) -> flask.Flask:
    """The hub as a WSGI application. Takes over `pipeline.publish`.

    Args:
        pipeline: takes batches; see `monitor.pipeline`.
        run_dir: the folder that keeps the runs.
        tokens: viewer's and agents'.
        allowed_hosts: names it answers to besides localhost, 127.0.0.1 and [::1].
        allowed_origins: origins that may connect besides its own page's ("https://host:port").
        own_address: also answer to the address that a request arrived at; for a hub on all interfaces.
        proxy: believe X-Forwarded-For, -Proto, -Host and -Prefix of one proxy.
        version: told on the page and by /healthz.

    Raises:
        ValueError: an allowed host or origin is none; the message is for whoever named it.
    """
    access = Access(
        tokens,
        frozenset(map(host_name, allowed_hosts)),
        frozenset(map(origin_name, allowed_origins)),
        own_address,
    )
    refusals, source = Refusals(), Source(pipeline, run_dir)
    app = flask.Flask("monitor.web", static_folder=None, template_folder=str(assets.folder("templates")))
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    app.url_map.merge_slashes = False  # it redirects, and an address is right or it is not
    live, ingest = Live(access, refusals, source), Ingest(access, refusals, pipeline)
    sockets = open_sockets(app, (live, ingest), access.allows_origin)
    app.register_blueprint(pages.blueprint(access, refusals, version))
    app.register_blueprint(api.blueprint(source))
    app.register_blueprint(actions.blueprint(source))
    app.register_blueprint(compare.blueprint(source))
    app.register_blueprint(exports.blueprint(source))
    app.register_blueprint(ranks.blueprint(source))
    app.register_blueprint(metrics.blueprint(source, live, ingest))
    app.register_error_handler(Exception, _failed)
    live.attach(sockets.server.manager)
    pipeline.publish = live.publisher.publish
    app.extensions[_EXTENSION] = HubServices(
        live, ingest, sockets, partial(metrics.samples, source, live, ingest)
    )
    app.wsgi_app = _guarded(app.wsgi_app, access, refusals, proxy)  # type: ignore[method-assign]
    return app


def services_of(app: flask.Flask) -> HubServices:
    """The doors of an app that `create_app` made."""
    services: HubServices = app.extensions[_EXTENSION]
    return services


def _guarded(inner: Any, access: Access, refusals: Refusals, proxy: bool) -> Any:
    guard: Any = Guard(inner, access, refusals)
    if proxy:
        # The Host as it arrived is checked too: a page can forge X-Forwarded-Host, but not Host.
        guard = HostGuard(ProxyFix(guard, x_for=1, x_proto=1, x_host=1, x_prefix=1), access, refusals)
    return Frames(guard, access.tokens)


def _failed(error: Exception) -> flask.Response:
    """Every error as JSON."""
    if isinstance(error, HTTPException):
        answer = api.refusal(error.description or error.name, error.code or 500)
        for name, value in error.get_headers():
            if name == "Allow":
                answer.headers[name] = value
        return answer
    if isinstance(error, NoSuchRunError):
        return api.reply({"error": str(error)}, 404)
    if isinstance(error, StoreError):
        return api.reply({"error": str(error)}, 503)
    _log.error("%s %s failed", flask.request.method, flask.request.path, exc_info=error)
    return api.reply({"error": "the hub failed at this; its log says why"}, 500)
