"""A session inside a notebook, in real IPython; Colab is played at its edge. What a browser
makes of it: tests/web/test_in_notebook.py."""

from __future__ import annotations

import re
import sys
import time
import types
from typing import Any

import pytest
from webhub import VIEWER

from monitor import frame_tickets, notebook
from monitor.session import Session, script_name

URL = f"http://127.0.0.1:7007/?token={VIEWER}#/run/r-1"


def ticket_of(text: str) -> str:
    found = re.search(r"ticket=([\w.-]+)", text)
    assert found
    return found[1]


def test_the_output_holds_a_ticket_and_not_the_token():
    """A notebook is saved with its outputs; what is in them ends within minutes."""
    text = notebook.html("r-1", URL)
    assert VIEWER not in text
    assert frame_tickets.holds(ticket_of(text), VIEWER, "ticket", time.time())
    assert not frame_tickets.holds(ticket_of(text), VIEWER, "ticket", time.time() + 3600)
    assert VIEWER not in notebook.plain("r-1")


def test_a_runs_name_cannot_end_the_script_or_the_text():
    """Names are the user's."""
    evil = "</script><script>alert(1)</script>"
    text = notebook.html(evil, f"http://127.0.0.1:7007/?token={VIEWER}#/run/{evil}")
    assert text.count("</script>") == 1
    assert text.count("<script>") == 1


@pytest.mark.parametrize("url", [None, "http://hub.example.org:7007", "http://127.0.0.1:7007/"])
def test_without_a_dashboard_here_there_is_a_sentence(url: str | None):
    """A hub elsewhere has its own door; nothing pretends to be a frame."""
    assert notebook.html("r-1", url) == "<p>torchvitals watches run r-1</p>"
    assert notebook.html(None, url) == "<p>torchvitals watches nothing here</p>"


def test_a_session_displays_itself():
    """As the last line of a cell, in real IPython: HTML for the page and words for the rest."""
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    from IPython.utils.capture import capture_output

    session = Session()
    session.run, session.url = "r-1", URL
    try:
        shell.user_ns["session"] = session
        with capture_output() as caught:
            assert shell.run_cell("session").success
    finally:
        type(shell).clear_instance()
    [shown] = caught.outputs
    assert "<iframe" in shown.data["text/html"]
    assert shown.data["text/plain"] == "torchvitals watches run r-1"
    assert "<iframe" in session._repr_html_()


def test_colab_shows_it_through_its_own_proxy(monkeypatch: pytest.MonkeyPatch):
    """Its page cannot reach a port of the kernel's machine otherwise."""
    asked: list[tuple[Any, ...]] = []
    output = types.ModuleType("google.colab.output")
    output.serve_kernel_port_as_iframe = lambda port, **how: asked.append((port, how))  # type: ignore[attr-defined]
    colab = types.ModuleType("google.colab")
    colab.output = output  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "google.colab", colab)
    session = Session()
    session.run, session.url = "r-1", URL
    session._ipython_display_()
    [(port, how)] = asked
    assert port == 7007
    assert frame_tickets.holds(ticket_of(how["path"]), VIEWER, "ticket", time.time())
    assert how["path"].startswith("/?ticket=")
    assert how["path"].endswith("#/run/r-1")


def test_a_display_that_fails_does_not_end_the_cell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The cell may be the one that trains."""
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    monkeypatch.setitem(sys.modules, "google.colab", None)
    Session()._ipython_display_()
    assert "cannot be shown here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("launcher", "told", "name"),
    [
        ("/x/ipykernel_launcher.py", "/home/me/digits.ipynb", "digits"),
        ("/x/ipykernel_launcher.py", None, "notebook"),
        ("/x/colab_kernel_launcher.py", None, "notebook"),
        ("/x/train.py", "/home/me/digits.ipynb", "train"),
    ],
)
def test_a_run_is_called_as_its_notebook(
    monkeypatch: pytest.MonkeyPatch, launcher: str, told: str | None, name: str
):
    """Not as the program that runs kernels."""
    monkeypatch.setattr(sys, "argv", [launcher, "-f", "kernel.json"])
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    if told is not None:
        monkeypatch.setenv("JPY_SESSION_NAME", told)
    assert script_name() == name
