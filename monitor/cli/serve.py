"""`torchvitals serve`: the dashboard over all runs of a folder.

The launcher starts the same command with `--ephemeral`, a port that is bound already and a claim that
is held already; such a hub goes by itself some time after its last run and its last viewer.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import ipaddress
import json
import logging
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import monitor
from monitor import launcher, state
from monitor.cli import UsageError

HELP = "the dashboard over all runs that a folder keeps"
EXAMPLE = """  torchvitals serve
  torchvitals serve --run-dir /data/runs --port 7100
  torchvitals serve --host 0.0.0.0 --allow-remote --allow-host gpu1.example.org"""

#: Seconds without an agent and without a viewer after which an ephemeral hub goes.
IDLE_S = 15 * 60.0
#: Addresses that mean every interface of the machine.
ALL_INTERFACES = ("0.0.0.0", "::")  # noqa: S104  compared with, not bound to
#: Characters of a token at least, as `monitor.web.auth` wants it.
LEAST_TOKEN = 22
#: Seconds between two looks at what fell silent.
TICK_S = 2.0

_log = logging.getLogger("monitor.web")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--run-dir", metavar="DIR", help="where the runs are kept")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument("--port", type=int, help="port to listen at (default: the first free one from 7007)")
    parser.add_argument(
        "--allow-remote", action="store_true", help="let other machines connect (with the token)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="answer to this name too; repeatable",
    )
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL", help="let this site connect; repeatable"
    )
    parser.add_argument(
        "--proxy", action="store_true", help="believe the X-Forwarded headers of a reverse proxy"
    )
    parser.add_argument(
        "--otlp",
        metavar="URL",
        help="push what /metrics tells to this OTLP collector (MONITOR_OTLP_ENDPOINT)",
    )
    parser.add_argument("--open", action="store_true", help="open the dashboard in a browser")
    for hidden, kind in (("--fd", int), ("--lock-fd", int), ("--state", Path), ("--idle-s", float)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--ephemeral", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal comes (or, ephemeral, until nobody needs it); exit status 0."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    runs = state.run_dir(args.run_dir)
    if args.fd is not None:
        hub, listener = _given(args.state), socket.socket(fileno=args.fd)
        return _serve(args, hub, listener)
    _check_bind(args.host, args.allow_remote)
    _check_names(args.allow_host, args.allow_origin)
    gate, lock = _claims(runs)
    try:
        if lock is None:
            return _already(runs, args)
        hub, listener = _placed(args, runs)
    finally:
        if gate is not None:
            os.close(gate)
    return _serve(args, hub, listener)  # the lock's descriptor stays open until this process ends


def _check_bind(host: str, allowed: bool) -> None:
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host.strip("[]")).is_loopback:
            return
    if host != "localhost" and not allowed:
        raise UsageError(f"--host {host} lets other machines connect; add --allow-remote if that is meant")


def _check_names(hosts: list[str], origins: list[str]) -> None:
    if not (hosts or origins):
        return
    from monitor.web.auth import host_name, origin_name

    try:
        _ = [host_name(host) for host in hosts], [origin_name(origin) for origin in origins]
    except ValueError as error:
        raise UsageError(str(error)) from None


def _claims(runs: Path) -> tuple[int | None, int | None]:
    """Gate and lock as the launcher takes them; the lock is None where another hub holds it."""
    note, lock_file = state.hub_files(runs)
    try:
        return state.claim(note.with_suffix(".gate"), wait=True), state.claim(lock_file)
    except OSError:  # no claims are to be had here (Windows); two hubs of one folder do no harm
        return None, -1


def _already(runs: Path, args: argparse.Namespace) -> int:
    known = state.load_hub(runs)
    if known is None:
        raise UsageError(f"another hub serves {runs}, but does not say where; stop it and try again")
    if args.host != known.host or args.port not in (None, known.port):
        raise UsageError(f"another hub serves {runs} at {known.base}; stop it first to serve it elsewhere")
    print(f"already served: {known.url}")
    return 0


def _placed(args: argparse.Namespace, runs: Path) -> tuple[state.HubState, socket.socket]:
    """Where to listen, and the tokens: those of the last hub of this folder, so that links stay valid."""
    known = state.load_hub(runs)
    host = args.host.strip("[]")
    try:
        listener = launcher.listen(args.port or (known.port if known else None), host)
    except OSError as error:
        raise UsageError(f"cannot listen at {args.host}: {error.strerror or error}") from None
    port = listener.getsockname()[1]
    if args.port not in (None, 0, port):
        listener.close()
        raise UsageError(f"port {args.port} is taken; leave --port out to get the first free one")
    hub = state.HubState(
        port=port,
        viewer_token=known.viewer_token if known else secrets.token_urlsafe(24),
        ingest_token=_agents_token() or (known.ingest_token if known else secrets.token_urlsafe(24)),
        run_dir=str(runs),
        host=host,
    )
    state.save_hub(hub)
    return hub, listener


def _agents_token() -> str | None:
    """The token of agents on other machines, where MONITOR_TOKEN says which: they are told the same way."""
    token = os.environ.get("MONITOR_TOKEN")
    if token and (len(token) < LEAST_TOKEN or not token.isascii()):
        raise UsageError(
            f"MONITOR_TOKEN is at least {LEAST_TOKEN} plain characters, such as openssl rand -hex 24"
        )
    return token or None


def _given(note: Path | None) -> state.HubState:
    try:
        assert note is not None, "--fd comes with --state"
        found = json.loads(note.read_text())
        return state.HubState(
            **{field.name: found[field.name] for field in dataclasses.fields(state.HubState)}
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(
            f"--state {note} holds no tokens; it is written by whoever starts this hub"
        ) from None


def _serve(args: argparse.Namespace, hub: state.HubState, listener: socket.socket) -> int:
    # Imported here, so that --help and a mistake in the options cost no web server.
    from monitor.pipeline import Pipeline
    from monitor.web.app import services_of
    from monitor.web.server import Server

    pipeline = Pipeline(Path(hub.run_dir), addresses=state.alert_addresses, link=_linked(hub))
    app = _app(args, hub, pipeline)
    server, stop = Server(app, listener), _on_signals()
    server.start()
    gc.freeze()  # what was imported stays; collections need not walk it
    _greet(hub, args.open)
    pusher = _pusher(args.otlp, services_of(app).samples)
    _wait(stop, services_of(app), pipeline.tick, (args.idle_s or IDLE_S) if args.ephemeral else None)
    server.stop()
    if pusher is not None:
        pusher.close()
    services_of(app).close()
    pipeline.close()
    return 0


def _pusher(option: str | None, samples: Callable[[], Any]) -> Any:
    """Who pushes to a collector, where one is named. Without its library the hub serves all the same."""
    endpoint = option or os.environ.get("MONITOR_OTLP_ENDPOINT")
    if not endpoint:
        return None
    try:
        from monitor.bridges.to_otlp import Pusher
    except ImportError as error:
        _log.warning("nothing is pushed to %s: no %s; pip install 'torchvitals[otlp]'", endpoint, error.name)
        return None
    return Pusher(endpoint, samples, monitor.__version__)


def _app(args: argparse.Namespace, hub: state.HubState, pipeline: Any) -> Any:
    from monitor.web.app import create_app
    from monitor.web.auth import Tokens

    return create_app(
        pipeline,
        run_dir=Path(hub.run_dir),
        tokens=Tokens(hub.viewer_token, hub.ingest_token),
        allowed_hosts=[*_own_names(hub.host), *args.allow_host],
        allowed_origins=args.allow_origin,
        own_address=hub.host in ALL_INTERFACES,
        proxy=args.proxy,
        version=monitor.__version__,
    )


def _greet(hub: state.HubState, opens: bool) -> None:
    print(f"serving {hub.run_dir}\n  {hub.url}", flush=True)
    if hub.host in ALL_INTERFACES:
        print(f"  {hub.url.replace('127.0.0.1', socket.gethostname())}   (from other machines)", flush=True)
    if _own_names(hub.host):
        print("  agents elsewhere: MONITOR_HUB is this address, MONITOR_TOKEN the one set here", flush=True)
        print("  not encrypted: on a network you do not trust, use ssh -L or a proxy with TLS", flush=True)
    if opens:
        import webbrowser

        webbrowser.open(hub.url)


def _linked(hub: state.HubState) -> Callable[[str], str]:
    """The address of a run's page for messages: they may be read by anybody, so it holds no token."""
    base = hub.base
    if hub.host in ALL_INTERFACES:
        base = base.replace("127.0.0.1", socket.gethostname())
    return lambda run: f"{base}#/run/{run}"


def _own_names(host: str) -> list[str]:
    """Names of this machine that a hub bound to `host` answers to, besides the loopback's."""
    if host in ("127.0.0.1", "::1", "localhost"):
        return []
    literal = f"[{host}]" if ":" in host else host
    return [literal, socket.gethostname()]


def _on_signals() -> threading.Event:
    """Set by SIGTERM and SIGINT; a second one ends the process at once."""
    stop = threading.Event()

    def end(number: int, _: Any) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return stop


def _wait(
    stop: threading.Event,
    services: Any,
    tick: Callable[[], None],
    idle_s: float | None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Return when `stop` is set, or when nobody was connected for `idle_s` seconds.

    `tick` is called every few seconds meanwhile; an error of its own is logged.
    """
    busy = clock()
    while not stop.wait(min(TICK_S, (idle_s or 4 * TICK_S) / 4)):
        try:
            tick()
        except Exception:  # noqa: BLE001  the hub outlives it
            _log.exception("the pipeline's tick failed")
        if services.busy:
            busy = clock()
        elif idle_s is not None and clock() - busy >= idle_s:
            return
