"""Downloads through the hub's door."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest
from waiting import until
from webhub import INGEST, Hub, make_batch

FILES = ["csv", "parquet", "json", "html", "perfetto.json"]


def export(hub: Hub, suffix: str, query: str = ""):
    return hub.get(f"/api/runs/run-1/export.{suffix}{query}")


@pytest.mark.parametrize("suffix", FILES)
def test_each_file_is_a_download_with_the_runs_name(hub: Hub, suffix: str):
    """And with its own media type; nothing sniffs it into something that runs."""
    answer = export(hub, suffix)
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == f'attachment; filename="run-1.{suffix}"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.content


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("token", [None, INGEST])
def test_downloads_take_the_viewers_token(hub: Hub, suffix: str, token: str | None):
    """Like every other route."""
    assert hub.get(f"/api/runs/run-1/export.{suffix}", token).status_code == 403


def test_a_stream_and_a_range_are_taken(hub: Hub):
    """As `series` takes them."""
    lines = export(hub, "csv", "?stream=rank/0&from=0.05&to=0.25").text.splitlines()
    assert [line.split(",")[:2] for line in lines] == [["step", "t_s"], ["1", "0.1"], ["2", "0.2"]]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("run-1/export.csv?stream=../x", 400, "stream"),
        ("run-1/export.csv?from=2&to=1", 400, "from lies after to"),
        ("run-1/export.html?to=soon", 400, "time"),
        ("run-1/export.csv?stream=rank/9", 404, "rank/0"),
        ("run-1/export.html?language=xx", 400, "en, zh-CN"),
        ("run-2/export.json", 404, "no run"),
        ("..%2f..%2fetc/export.json", 404, ""),
        ("run-1/export.exe", 404, "csv"),
    ],
)
def test_a_mistake_is_told_before_a_byte_of_the_file(hub: Hub, path: str, status: int, says: str):
    """With its status and one line, never as half a file."""
    answer = hub.get(f"/api/runs/{path}")
    assert answer.status_code == status
    assert says in answer.json()["error"]


def test_what_there_is_can_be_asked(hub: Hub):
    """The page offers what works and names what to install for the rest."""
    formats = hub.get("/api/exports").json()["formats"]
    assert [form["file"] for form in formats] == [f"export.{suffix}" for suffix in FILES]
    assert [form["format"] for form in formats if form["stream"]] == ["csv", "parquet"]


def test_the_report_comes_in_the_language_asked_for(hub: Hub):
    """English unless another is named; the list of formats says which form has a language."""
    assert '<html lang="en">' in export(hub, "html").text
    assert '<html lang="zh-CN">' in export(hub, "html", "?language=zh-CN").text
    formats = hub.get("/api/exports").json()["formats"]
    assert [form["format"] for form in formats if form["language"]] == ["html"]


def test_without_pyarrow_parquet_says_what_to_install(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    """Status 501, and everything else works."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "monitor.exports.as_parquet", raising=False)
    answer = export(hub, "parquet")
    assert (answer.status_code, "torchvitals[parquet]" in answer.json()["error"]) == (501, True)
    assert [f["install"] is None for f in hub.get("/api/exports").json()["formats"]].count(False) == 1
    assert export(hub, "csv").status_code == 200


def test_files_hold_what_the_hub_shows(hub: Hub):
    """A live run can be downloaded while it grows."""
    hub.pipeline.take(make_batch(seq=2))
    assert len(export(hub, "csv").text.splitlines()) == 9
    assert json.loads(export(hub, "json").text)["report"] == hub.get("/api/runs/run-1/report").json()
    assert json.loads(export(hub, "perfetto.json").text)["otherData"]["steps"] == {"rank 0": "0 to 7"}
    pq = pytest.importorskip("pyarrow.parquet")
    assert pq.read_table(io.BytesIO(export(hub, "parquet").content)).num_rows == 8


def test_a_client_that_goes_away_leaves_nothing_open(hub: Hub):
    """The store is closed with the answer, read to its end or not. (SQLite keeps a few descriptors for its
    next connection while another one of the process holds a lock.)
    """
    for _ in range(30):
        hub.get("/api/runs/run-1/export.csv", stream=True).close()
    until(lambda: open_stores() <= 12)


def open_stores() -> int:
    """Descriptors of this process on a store."""
    paths = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    return sum("store.sqlite" in path for path in paths)
