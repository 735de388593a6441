"""A session inside a notebook: a frame with the dashboard below the cell.

The frame's address holds a ticket that ends after minutes, never the token: notebooks are saved and shared
with their outputs. Where the hub can be reached is for the browser to find out, so a few lines of script do.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import parse_qs, urlsplit

#: Height of the frame in CSS pixels: strip, verdict and the first finding without scrolling.
HEIGHT_PX = 640

#: Through the notebook server's proxy first, since that works wherever its page works; else straight to the
#: port, where notebook and hub are on the machine that the browser is on, or seem to be.
_SCRIPT = """
(async () => {
  const { id, port, query, hash } = TOLD;
  const box = document.getElementById(id);
  const config = document.getElementById("jupyter-config-data");
  const base = config ? JSON.parse(config.textContent).baseUrl : document.body.dataset.baseUrl;
  const places = [];
  if (base) places.push(new URL(`${base}proxy/${port}/`, location.href).href);
  if (["localhost", "127.0.0.1"].includes(location.hostname)) places.push(`http://${location.hostname}:${port}/`);
  if (location.protocol.startsWith("vscode")) places.push(`http://localhost:${port}/`);
  for (const place of places) {
    const own = place.startsWith(location.origin + "/");
    const options = { method: "HEAD", mode: own ? "same-origin" : "no-cors", cache: "no-store" };
    const answer = await fetch(place + query, options).catch(() => null);
    if (!answer || (own && !answer.ok)) continue;
    const frame = box.querySelector("iframe"), link = box.querySelector("a");
    frame.src = link.href = place + query + hash;
    frame.hidden = link.hidden = false;
    return;
  }
  box.querySelector("p").hidden = false;
})();
"""

_BOX = """<div id="{id}" style="font:13px/1.5 system-ui,sans-serif">
<iframe title="torchvitals: {run}" width="100%" height="{height}" style="border:0" hidden></iframe>
<a target="_blank" rel="noopener" hidden>open in a tab of its own</a>
<p hidden>torchvitals watches this run, but its dashboard (port {port} of the machine that runs the kernel)
cannot be reached from this page. Install <code>jupyter-server-proxy</code> beside Jupyter, or forward the
port: <code>ssh -L {port}:127.0.0.1:{port} HOST</code>. Then run the cell again.</p>
<script>{script}</script></div>"""


@dataclass(frozen=True)
class _Address:
    """What a frame needs of a dashboard's address."""

    port: int
    query: str
    hash: str

    @classmethod
    def of(cls, url: str | None) -> _Address | None:
        """None where there is no dashboard on this machine, or no token to show it by."""
        parts = urlsplit(url or "")
        token = parse_qs(parts.query).get("token")
        if parts.port is None or not token or parts.hostname not in ("127.0.0.1", "localhost"):
            return None
        from monitor import frame_tickets  # only here: a training has no use for it

        ticket = frame_tickets.issue(token[0], "ticket", time.time())
        return cls(parts.port, f"?ticket={ticket}", f"#{parts.fragment}" if parts.fragment else "")


def html(run: str | None, url: str | None) -> str:
    """The dashboard in a frame, as HTML for a notebook's output; a sentence where there is none."""
    found = _Address.of(url)
    if found is None:
        return f"<p>{escape(plain(run))}</p>"
    settings: dict[str, Any] = {"id": f"torchvitals-{secrets.token_hex(4)}", **vars(found)}
    # "<" is all that could end a script early
    script = _SCRIPT.replace("TOLD", json.dumps(settings).replace("<", "\\u003c"))
    return _BOX.format(
        id=settings["id"], run=escape(str(run)), port=found.port, height=HEIGHT_PX, script=script
    )


def plain(run: str | None) -> str:
    """The same in words, for a front end that shows text. Without the address: outputs are saved."""
    return f"torchvitals watches run {run}" if run else "torchvitals watches nothing here"


def show(run: str | None, url: str | None) -> None:
    """Show the dashboard below the cell. In Colab, through Colab's own proxy."""
    found = _Address.of(url)
    if found is not None and _in_colab(found):
        return
    from IPython.display import display

    display({"text/html": html(run, url), "text/plain": plain(run)}, raw=True)


def _in_colab(found: _Address) -> bool:
    """Ask Colab for a frame; False where this is not Colab."""
    try:
        from google.colab import output
    except ImportError:
        return False
    output.serve_kernel_port_as_iframe(
        found.port, path=f"/{found.query}{found.hash}", width="100%", height=str(HEIGHT_PX)
    )
    return True


def after_each_cell(pause: Callable[[], None]) -> Callable[[], None] | None:
    """Have `pause` called whenever a cell has run.

    Returns:
        What takes that back; None outside a notebook.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return None

    def over(*_: object) -> None:
        with contextlib.suppress(Exception):  # the cell has run: nothing of ours may say otherwise
            pause()

    shell.events.register("post_run_cell", over)
    return lambda: shell.events.unregister("post_run_cell", over)
