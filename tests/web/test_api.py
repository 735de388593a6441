"""REST reads: right answers, and nothing but JSON whatever is asked."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from webhub import VIEWER, Hub, make_batch

#: What hostile or clumsy clients put into a query.
VALUES = st.text(max_size=20) | st.sampled_from(
    ["nan", "inf", "-1", "1e999", "0x10", "9" * 40, "²", "a,b", ",", "run", "rank/0", "../x", "'; DROP", "\0"]
)
NAMES = st.sampled_from(["stream", "keys", "from", "to", "points", "after", "limit", "token", "x"])


def test_the_list_names_every_run(hub: Hub):
    """Newest first."""
    hub.pipeline.take(make_batch("run-2"))
    assert [run["run"] for run in hub.get("/api/runs").json()["runs"]] == ["run-2", "run-1"]


def test_a_runs_state_comes_with_what_describes_it(hub: Hub):
    """The page needs one read to begin."""
    hub.pipeline.states["run-1"] = {"run": "run-1", "seq": 7, "tiles": {"loss": float("nan")}}
    body = hub.get("/api/runs/run-1").json()
    assert (body["seq"], body["tiles"]["loss"]) == (7, None)
    assert body["meta"]["run"] == "run-1"
    assert body["facts"] == {}
    assert {"data_starvation", "stall"} <= set(body["checks"])


def test_a_series_has_min_max_and_mean(hub: Hub):
    """What was not measured is null."""
    body = hub.get("/api/runs/run-1/series?stream=rank/0&keys=step_ms,loss").json()
    assert len(body["t"]) == 4
    assert body["series"]["step_ms"] == {"min": [10.0] * 4, "max": [10.0] * 4, "mean": [10.0] * 4}
    assert body["series"]["loss"]["mean"] == [None] * 4


def test_a_series_keeps_to_its_range_and_number_of_points(hub: Hub):
    """`from`, `to` and `points` are what they say."""
    for seq in range(2, 40):
        hub.pipeline.take(make_batch(seq=seq))
    body = hub.get("/api/runs/run-1/series?stream=rank/0&keys=step_ms&from=1&to=9&points=10").json()
    assert 1 <= len(body["t"]) <= 10
    assert 1 <= min(body["t"]) <= max(body["t"]) <= 9


def test_the_newest_events_and_some_kinds(hub: Hub):
    """A page that opens late sees the end of the story first, and only the kinds it asks for."""
    hub.pipeline.take(make_batch(seq=2))
    events = hub.get("/api/runs/run-1/events").json()["events"]
    assert len(events) == 2
    assert hub.get("/api/runs/run-1/events?newest=1&limit=1").json()["events"] == events[-1:]
    assert hub.get("/api/runs/run-1/events?newest=1&kinds=stack").json() == {"events": []}
    assert hub.get("/api/runs/run-1/events?kinds=log,stack").json()["events"] == events
    assert hub.get("/api/runs/run-1/events?kinds=a%20b").status_code == 400


def test_a_step_is_found_in_time(hub: Hub):
    """The page marks a finding's steps on its time axis; a step that is not there has no time."""
    rows = hub.get("/api/runs/run-1/series?stream=rank/0&keys=step_ms").json()["t"]
    body = hub.get("/api/runs/run-1/times?at=0,3,99").json()
    assert body == {"t_s": {"0": rows[0], "3": rows[3], "99": None}}
    assert hub.get("/api/runs/run-1/times?stream=rank/7&at=0").json() == {"t_s": {"0": None}}


@pytest.mark.parametrize("at", ["", "-1", "1.5", "x", "9" * 40, ",".join(map(str, range(65)))])
def test_a_wrong_step_is_refused(hub: Hub, at: str):
    """Row numbers are whole, and few."""
    assert hub.get(f"/api/runs/run-1/times?at={at}").status_code == 400


def test_events_come_after_the_last_one_known(hub: Hub):
    """A script can poll them without seeing one twice."""
    events = hub.get("/api/runs/run-1/events").json()["events"]
    assert [event["kind"] for event in events] == ["log"]
    assert hub.get(f"/api/runs/run-1/events?after={events[-1]['id']}").json() == {"events": []}


@pytest.mark.parametrize(
    "query",
    ["", "keys=", "keys=,", "keys=a b", "keys=" + ",".join(f"k{i}" for i in range(65)), "keys=" + "k" * 65]
    + ["keys=a&points=0", "keys=a&points=2001", "keys=a&points=-1", "keys=a&points=1.5", "keys=a&points=x"]
    + [
        "keys=a&from=x",
        "keys=a&to=nan",
        "keys=a&from=inf",
        "keys=a&from=2&to=1",
        "keys=a&stream=..",
        "keys=a;b",
    ],
)
def test_a_wrong_question_is_said_to_be_wrong(hub: Hub, query: str):
    """400 and one line; never an empty chart."""
    answer = hub.get(f"/api/runs/run-1/series?{query}")
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "limit=0", "limit=1001", "limit=1e3", "after=" + "9" * 30]
)
def test_a_wrong_page_of_events_is_refused(hub: Hub, query: str):
    """No answer is longer than its limit."""
    assert hub.get(f"/api/runs/run-1/events?{query}").status_code == 400


def test_what_has_no_rows_has_no_points(hub: Hub):
    """A page asks for streams that a run does not have yet; neither is an error."""
    body = hub.get("/api/runs/run-1/series?stream=rank/9&keys=loss").json()
    assert (body["t"], body["series"]["loss"]["mean"]) == ([], [])
    assert (
        hub.get("/api/runs/run-1/series?stream=rank/0&keys=nobody").json()["series"]["nobody"]["mean"]
        == [None] * 4
    )


@pytest.mark.parametrize("tail", ["", "/report", "/series?keys=a", "/events"])
@pytest.mark.parametrize(
    "run",
    ["nobody", "..", ".", "../runs/run-1", "run-1/../run-1", "/etc", "run-1\0", "run-1\n", "*", "~", "RUN-1"],
)
def test_no_name_leads_out_of_the_folder(hub: Hub, run: str, tail: str):
    """A run is looked for in the listing; anything else is not found."""
    head = f"GET /api/runs/{quote(run, safe='')}{tail} HTTP/1.1\r\nHost: localhost\r\n"
    answer = hub.raw((head + f"Authorization: Bearer {VIEWER}\r\n\r\n").encode())
    assert b" 404 " in answer.split(b"\r\n")[0]
    assert set(json.loads(answer.split(b"\r\n\r\n")[1])) == {"error"}


def test_a_folder_without_a_store_is_no_run(hub: Hub):
    """Somebody else's folder beside the runs is not opened."""
    (hub.pipeline.run_dir / "notes").mkdir()
    assert hub.get("/api/runs/notes/events").status_code == 404


def test_a_damaged_store_is_said_to_be_damaged(hub: Hub):
    """In words, not as a traceback; the other runs are untouched."""
    (hub.pipeline.run_dir / "broken").mkdir()
    (hub.pipeline.run_dir / "broken" / "store.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    answer = hub.get("/api/runs/broken/events")
    assert answer.status_code == 503
    assert "Traceback" not in answer.json()["error"]
    assert hub.get("/api/runs/run-1/events").status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "BREW"])
def test_there_is_nothing_to_write(hub: Hub, method: str):
    """The API reads; 405 in JSON."""
    answer = hub.get("/api/runs", method=method)
    assert answer.status_code == 405
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize("length", ["90000", "9" * 30, "-1", "x", "16385"])
def test_no_body_is_taken(hub: Hub, length: str):
    """413 in JSON, however long it is or says it is, and the hub goes on."""
    head = f"POST /api/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {VIEWER}\r\n"
    answer = hub.raw(f"{head}Content-Length: {length}\r\n\r\n".encode() + b"{" * 20_000)
    assert b" 413 " in answer.split(b"\r\n")[0]
    assert set(json.loads(answer.split(b"\r\n\r\n")[1])) == {"error"}
    assert hub.get("/healthz").status_code == 200


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["series", "events", "report", "", "x"]) | st.text(max_size=12),
    query=st.lists(st.tuples(NAMES, VALUES), max_size=5),
)
def test_no_question_breaks_the_api(hub: Hub, path: str, query: list[tuple[str, str]]):
    """Whatever is asked: an answer or 4xx, always JSON, never a traceback."""
    answer = asked(hub, f"/api/runs/run-1/{quote(path)}?{urlencode(query)}")
    assert answer.status_code in {200, 308, 400, 403, 404, 405}
    assert answer.status_code == 308 or isinstance(answer.json(), dict)
    assert "Traceback" not in answer.text


def asked(hub: Hub, path: str) -> Any:
    """The app's answer without a socket in between, for many questions in a short time."""
    headers = {"Authorization": f"Bearer {VIEWER}", "Host": "localhost"}
    return Answer(hub.app.test_client().get(path, headers=headers))


class Answer:
    """A test client's answer in the manner of `requests`."""

    def __init__(self, inner: Any) -> None:
        self.status_code, self.text = inner.status_code, inner.get_data(as_text=True)

    def json(self) -> Any:
        return json.loads(self.text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
