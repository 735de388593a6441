"""Many ranks of many hosts through real links into a real hub: nothing is lost, and the page can be drawn."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from crowd import Crowd, uplinks
from waiting import until
from webhub import INGEST, VIEWER, Hub, WatchedPipeline

from monitor.store import FILE_NAME, Store
from monitor.web.app import create_app, services_of
from monitor.web.auth import Tokens
from monitor.web.server import Server

HOSTS, EACH, LATE = 8, 8, 21


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, Crowd, dict[str, Any]]]:
    """A hub that 64 ranks of 8 hosts were played to, at 50 steps a second, and how it answered meanwhile."""
    folder = tmp_path_factory.mktemp("crowd")
    pipeline = WatchedPipeline(folder / "runs")
    app = create_app(pipeline, run_dir=folder / "runs", tokens=Tokens(VIEWER, INGEST))
    server = Server(app, socket.create_server(("127.0.0.1", 0)))
    server.start()
    hub = Hub(app, server.port, pipeline)
    crowd = Crowd(
        folder / "t", HOSTS, EACH, uplinks(hub.url, INGEST, "crowd-1", folder), late=LATE, step_s=0.02
    )
    crowd.run_for(2.5)
    crowd.end()
    assert all(host.uplink.drain(30) for host in crowd.hosts)
    meanwhile = hub.get("/api/runs/crowd-1/ranks?limit=1024").json()
    crowd.close()
    yield hub, crowd, meanwhile
    server.stop()
    services_of(app).close()
    hub.close()
    pipeline.close()


def test_nothing_is_lost(played: tuple[Hub, Crowd, dict[str, Any]]) -> None:
    """Each host's first rank is stored step by step, and every step of all ranks is in an average."""
    hub, crowd, _ = played
    with Store(hub.pipeline.run_dir / crowd.run / FILE_NAME) as store:
        streams = store.streams()
        full = [streams[f"rank/{host.ranks[0]}"] for host in crowd.hosts]
        briefed = [store.totals(f"brief/{host.name}", ["steps"])["steps"][0] for host in crowd.hosts]
    assert full == [crowd.steps] * HOSTS
    assert briefed == [crowd.steps * EACH] * HOSTS
    assert sum(name.startswith("rank/") for name in streams) == HOSTS


def test_the_page_has_all_ranks_worst_first(played: tuple[Hub, Crowd, dict[str, Any]]) -> None:
    """The one that works longest while the others wait stands first, and who is told in averages is said."""
    _, crowd, seen = played
    assert (seen["known"], seen["world_size"], seen["reduced"]) == (64, 64, 64 - HOSTS)
    assert seen["ranks"][0]["rank"] == LATE
    assert {rank["steps"] for rank in seen["ranks"]} == {crowd.steps}
    assert {rank["host"] for rank in seen["ranks"]} == {host.name for host in crowd.hosts}
    assert seen["ranks"][0]["comm_share"] == pytest.approx(0.02, abs=0.005)


def test_the_band_is_over_all_ranks(played: tuple[Hub, Crowd, dict[str, Any]]) -> None:
    """Its least is the late rank's."""
    hub, _, _ = played
    band = hub.get("/api/runs/crowd-1/band?metric=comm_ms&points=1").json()
    assert (band["ranks"], band["min_rank"]) == ([64], [LATE])


def test_the_report_counts_all_ranks(played: tuple[Hub, Crowd, dict[str, Any]]) -> None:
    """Samples are those of 64 ranks, and the report says of how many it has averages only."""
    hub, crowd, _ = played
    report = until(lambda: hub.get("/api/runs/crowd-1/report").json())
    assert (report["status"], report["steps"], report["reduced_ranks"]) == ("finished", crowd.steps, 56)
    assert report["throughput"]["samples_per_s"] == pytest.approx(64 * 32 * 50, rel=0.1)
    assert report["dropped_records"] == 0
