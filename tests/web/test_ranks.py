"""What a page of many ranks reads."""

from __future__ import annotations

import pytest
from webhub import Hub


def test_ranks_and_bands_are_there_for_every_run(hub: Hub):
    """With the defaults of docs/api.md."""
    seen = hub.get("/api/runs/run-1/ranks").json()
    assert [rank["rank"] for rank in seen["ranks"]] == [0]
    assert set(seen["cells"]) == {"phase", "step_ms", "comm_ms"}
    band = hub.get("/api/runs/run-1/band").json()
    assert (band["metric"], len(band["t"])) == ("step_ms", len(band["median"]))


def test_only_what_was_asked_for_is_sent(hub: Hub):
    """`cells`, `limit`, `columns`, `from` and `to` are what they say."""
    seen = hub.get("/api/runs/run-1/ranks?cells=none&limit=1&columns=1&from=0&to=0.5").json()
    assert (seen["cells"], len(seen["t"]), seen["from"], seen["to"]) == ({}, 1, 0.0, 0.5)


@pytest.mark.parametrize(
    "query",
    [
        "ranks?limit=0",
        "ranks?columns=9999",
        "ranks?cells=loss",
        "ranks?from=2&to=1",
        "band?metric=loss",
        "band?points=x",
    ],
)
def test_a_wrong_question_gets_one_line(hub: Hub, query: str):
    """400, and what would be right."""
    answer = hub.get(f"/api/runs/run-1/{query}")
    assert (answer.status_code, list(answer.json())) == (400, ["error"])


def test_no_such_run_and_no_token(hub: Hub):
    """404 and 403, as everywhere."""
    assert hub.get("/api/runs/nobody/ranks").status_code == 404
    assert hub.get("/api/runs/..%2Frun-1/band").status_code == 404
    assert hub.get("/api/runs/run-1/ranks", token=None).status_code == 403


def test_one_rank_phase_by_phase(hub: Hub):
    """For a rank that is told in averages there is no stream; here it has its phases all the same."""
    seen = hub.get("/api/runs/run-1/ranks?only=0&cells=data_ms,other_ms&columns=3").json()
    assert ([rank["rank"] for rank in seen["ranks"]], list(seen["cells"])) == ([0], ["data_ms", "other_ms"])
    assert hub.get("/api/runs/run-1/ranks?only=7").json()["ranks"] == []
    assert hub.get("/api/runs/run-1/ranks?only=x").status_code == 400
