"""What a page may change, who may ask for it, and that nothing outside the run folder is ever reached."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import requests
from finished_runs import keep
from webhub import VIEWER, Hub, make_batch


@pytest.fixture
def over(hub: Hub) -> str:
    """A run that is over, beside the live one."""
    keep(hub.pipeline.run_dir, "over")
    return "over"


def post(hub: Hub, path: str, body: Any = None, **options: Any) -> requests.Response:
    """As the page does it."""
    headers = {"Content-Type": "application/json", **options.pop("headers", {})}
    return hub.get(path, method="POST", data=json.dumps(body or {}), headers=headers, **options)


def listed(hub: Hub) -> dict[str, dict[str, Any]]:
    return {run["run"]: run for run in hub.get("/api/runs").json()["runs"]}


def test_marks(hub: Hub, over: str) -> None:
    """They are in the list at once."""
    assert post(hub, "/api/runs/over/marks", {"tags": ["a"], "note": "n"}).json()["tags"] == ["a"]
    assert post(hub, "/api/runs/over/marks", {"archived": True}).json() == {
        "tags": ["a"],
        "note": "n",
        "archived": True,
    }
    assert listed(hub)[over]["archived"] is True


def test_marks_of_a_live_run(hub: Hub) -> None:
    """A run can be named while it goes on, and goes on."""
    assert post(hub, "/api/runs/run-1/marks", {"tags": ["now"]}).status_code == 200
    hub.pipeline.take(make_batch(seq=2))
    assert listed(hub)["run-1"]["tags"] == ["now"]


def test_baseline(hub: Hub, over: str) -> None:
    """Of its project; taken back by the same road."""
    assert post(hub, "/api/runs/over/baseline", {"on": True}).json() == {"project": "train", "baseline": over}
    assert listed(hub)[over]["baseline"] is True
    assert post(hub, "/api/runs/over/baseline", {"on": False}).json()["baseline"] is None
    assert listed(hub)[over]["baseline"] is False


def test_delete_and_undo(hub: Hub, over: str) -> None:
    """Gone from the list, named as what can be brought back, and back."""
    until = post(hub, "/api/runs/over/delete").json()["until_unix_s"]
    body = hub.get("/api/runs").json()
    assert [run["run"] for run in body["runs"]] == ["run-1"]
    assert body["trash"] == [{"run": over, "until_unix_s": until}]
    assert hub.get("/api/runs/over").status_code == 404
    assert post(hub, "/api/runs/over/restore").json() == {"run": over}
    assert hub.get("/api/runs/over/report").json()["steps"] == 400


def test_a_run_that_just_ended_is_closed_first(hub: Hub) -> None:
    """One that the hub still has open: its store is closed before its folder moves."""
    end = {
        "kind": "rank_end",
        "t_s": 1.0,
        "rank": 0,
        "code": 0,
        "signal": None,
        "reason": "end",
        "clean": True,
    }
    batch = make_batch(seq=2)
    hub.pipeline.take(
        type(batch)(batch.run, batch.host, 2, 1.0, batch.blocks, (end, {"kind": "run_end", "t_s": 1.0}))
    )
    assert listed(hub)["run-1"]["status"] == "finished"
    assert post(hub, "/api/runs/run-1/delete").status_code == 200
    assert post(hub, "/api/runs/run-1/restore").status_code == 200
    assert hub.get("/api/runs/run-1").json()["status"] == "finished"


def test_a_live_run_is_not_deleted(hub: Hub) -> None:
    """409, and it goes on."""
    answer = post(hub, "/api/runs/run-1/delete")
    assert answer.status_code == 409
    assert "not over" in answer.json()["error"]
    assert "run-1" in listed(hub)


@pytest.mark.parametrize("action", ["marks", "baseline", "delete", "restore"])
class TestWho:
    """Nobody but the page and who has the token."""

    def test_no_token(self, hub: Hub, over: str, action: str) -> None:
        """403 without one."""
        assert post(hub, f"/api/runs/over/{action}", {"on": True}, token=None).status_code == 403

    def test_the_agents_token_opens_nothing_here(self, hub: Hub, over: str, action: str) -> None:
        """403 with the wrong one."""
        assert post(hub, f"/api/runs/over/{action}", {"on": True}, token="i" * 32).status_code == 403

    def test_another_site(self, hub: Hub, over: str, action: str) -> None:
        """A page of another origin is turned away, though the browser adds the cookie."""
        evil = {"Origin": "https://evil.example"}
        assert post(hub, f"/api/runs/over/{action}", {"on": True}, headers=evil).status_code == 403
        assert over in listed(hub)

    def test_a_form(self, hub: Hub, over: str, action: str) -> None:
        """A form of another site can send no JSON: 415 for everything else."""
        form = {"Content-Type": "text/plain"}
        assert post(hub, f"/api/runs/over/{action}", {"on": True}, headers=form).status_code == 415
        assert over in listed(hub)

    def test_reading_changes_nothing(self, hub: Hub, over: str, action: str) -> None:
        """GET is no action (of a baseline it reads)."""
        expected = 200 if action == "baseline" else 405
        assert hub.get(f"/api/runs/over/{action}").status_code == expected
        assert over in listed(hub)

    @pytest.mark.parametrize("name", ["nobody", "..", "%2e%2e", "..%2f..%2fetc", ".trash", "over%00", "%20"])
    def test_no_such_run(self, hub: Hub, over: str, action: str, name: str) -> None:
        """A name is looked for and never made into a path."""
        before = sorted(path.name for path in hub.pipeline.run_dir.parent.iterdir())
        assert post(hub, f"/api/runs/{name}/{action}", {"on": True}).status_code in (404, 405, 409)
        assert sorted(path.name for path in hub.pipeline.run_dir.parent.iterdir()) == before

    @pytest.mark.parametrize("body", ["[]", "no json", "3", '"x"', "[" * 5000, "\xff"])
    def test_a_body_that_is_none(self, hub: Hub, over: str, action: str, body: str) -> None:
        """400, in JSON."""
        headers = {"Content-Type": "application/json"}
        answer = hub.get(
            f"/api/runs/over/{action}", method="POST", data=body.encode("latin-1"), headers=headers
        )
        assert answer.status_code == 400
        assert answer.json()["error"]


@pytest.mark.parametrize(
    ("action", "body"),
    [("marks", {"tags": "x"}), ("marks", {"x": 1}), ("baseline", {}), ("baseline", {"on": 1})],
)
def test_what_is_no_change(hub: Hub, over: str, action: str, body: Any) -> None:
    """400, and one line that says what is."""
    answer = post(hub, f"/api/runs/over/{action}", body)
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]


def test_foreign_files_keep_a_run(hub: Hub, over: str) -> None:
    """409 with the file's name."""
    (hub.pipeline.run_dir / over / "model.pt").write_text("x")
    answer = post(hub, "/api/runs/over/delete")
    assert answer.status_code == 409
    assert "model.pt" in answer.json()["error"]


def test_a_disk_that_cannot_be_written(hub: Hub, over: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 in JSON, and the marks stay as they were."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("monitor.runs.marks.write_private", full)
    answer = post(hub, "/api/runs/over/marks", {"note": "x"})
    assert answer.status_code == 503
    assert "No space left" in answer.json()["error"]


def test_the_cookie_opens_the_same(hub: Hub, over: str, tmp_path: Path) -> None:
    """The page itself has no token, only its cookie and its origin."""
    with requests.Session() as browser:
        browser.get(f"{hub.url}/?token={VIEWER}", timeout=10)
        answer = browser.post(
            f"{hub.url}/api/runs/over/marks", json={"note": "x"}, headers={"Origin": hub.url}, timeout=10
        )
    assert answer.status_code == 200


def test_a_live_run_that_cannot_be_read_now_is_not_deleted(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """409: the hub itself knows better than a store that is shut for a moment."""
    unreadable = {"status": "unreadable", "run": "run-1"}
    monkeypatch.setattr("monitor.runs.summary", lambda _folder: unreadable)
    assert post(hub, "/api/runs/run-1/delete").status_code == 409
    assert (hub.pipeline.run_dir / "run-1").is_dir()


def test_a_run_that_another_process_locks_is_not_deleted(
    hub: Hub, over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """409: whoever locks it uses it."""
    monkeypatch.setattr("monitor.store.database.BUSY_S", 0.01)
    lock = sqlite3.connect(hub.pipeline.run_dir / over / "store.sqlite")
    lock.execute("PRAGMA locking_mode = EXCLUSIVE")
    lock.execute("BEGIN EXCLUSIVE")
    try:
        assert post(hub, "/api/runs/over/delete").status_code == 409
    finally:
        lock.close()


def test_a_damaged_run_can_be_deleted(hub: Hub, over: str) -> None:
    """And brought back: it is no better for it."""
    (hub.pipeline.run_dir / over / "store.sqlite").write_bytes(b"no database" * 1000)
    assert listed(hub)[over]["status"] == "unreadable"
    assert post(hub, "/api/runs/over/delete").status_code == 200
    assert post(hub, "/api/runs/over/restore").status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status", "pair"),
    [
        ("run-1/delete", {}, 409, ["{run} is not over; end it first", {"run": "run-1"}]),
        (
            "gone/restore",
            {},
            409,
            ["{run!r} is not in the trash; deleted runs are kept for an hour", {"run": "'gone'"}],
        ),
        (
            "run-1/marks",
            {"tags": list(map(str, range(13)))},
            400,
            ["a run has at most {most} tags", {"most": "12"}],
        ),
        (
            "run-1/marks",
            {"note": "x" * 2001},
            400,
            ["a note is a text of at most {most} characters", {"most": "2000"}],
        ),
    ],
)
def test_a_refusal_can_be_said_in_another_language(
    hub: Hub, path: str, body: Any, status: int, pair: list[Any]
) -> None:
    """Its template comes with it; the English beside it is the same sentence."""
    answer = post(hub, f"/api/runs/{path}", body)
    assert (answer.status_code, answer.json()["i18n"]) == (status, pair)
    assert answer.json()["error"] == pair[0].replace("!r", "").format(**pair[1])


def test_a_folder_that_is_kept_says_why_in_any_language(hub: Hub, over: str) -> None:
    """With the file that is not ours."""
    (hub.pipeline.run_dir / over / "thesis.tex").write_text("")
    told = post(hub, "/api/runs/over/delete").json()
    assert told["i18n"][1] == {"run": "over", "file": "'thesis.tex'"}


def test_what_has_no_template_has_no_pair(hub: Hub) -> None:
    """A text without parameters is its own key in the catalogue."""
    told = post(hub, "/api/runs/run-1/baseline", {"on": 1}).json()
    assert told == {"error": "on is true or false"}
