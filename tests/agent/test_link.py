"""A link that is slow, mute or cut costs time and nothing else: every step of every rank arrives, once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from crowd import Crowd, uplinks
from link import Link
from waiting import until
from webhub import INGEST, VIEWER, Hub, WatchedPipeline

from monitor.agent import uplink
from monitor.store import FILE_NAME, Store
from monitor.web.app import create_app, services_of
from monitor.web.auth import Tokens
from monitor.web.server import Server

RUN = "crowd-1"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    pipeline = WatchedPipeline(tmp_path / "runs")
    app = create_app(pipeline, run_dir=tmp_path / "runs", tokens=Tokens(VIEWER, INGEST))
    server = Server(app, socket.create_server(("127.0.0.1", 0)))
    server.start()
    yield Hub(app, server.port, pipeline)
    server.stop()
    services_of(app).close()
    pipeline.close()


@pytest.fixture
def link(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Link]:
    """The way to it. A hub that says nothing is given up sooner than in earnest."""
    monkeypatch.setattr(uplink, "ACK_S", 0.6)
    monkeypatch.setattr(uplink, "RETRY_S", (0.05, 0.2))
    made = Link(hub.port)
    yield made
    made.close()


@pytest.fixture
def crowd(link: Link, tmp_path: Path) -> Iterator[Crowd]:
    """Two hosts with two ranks each, a hundred steps a second."""
    made = Crowd(tmp_path / "t", 2, 2, uplinks(link.url, INGEST, RUN, tmp_path), step_s=0.01)
    yield made
    made.close()


def arrived(hub: Hub) -> dict[str, int]:
    """Steps of each rank that are in the store."""
    path = hub.pipeline.run_dir / RUN / FILE_NAME
    if not path.exists():
        return {}
    with Store(path) as store:
        return {name: rows for name, rows in store.streams().items() if name.startswith("rank/")}


def ends_well(hub: Hub, crowd: Crowd) -> None:
    """Everything that was taken is stored, exactly once, and nothing was counted as lost."""
    crowd.end()
    assert all(host.uplink.drain(30) for host in crowd.hosts)
    assert arrived(hub) == {f"rank/{rank}": crowd.steps for rank in range(4)}
    with Store(hub.pipeline.run_dir / RUN / FILE_NAME) as store:
        numbers = store.rows("rank/3", ["step_ms"], 0, crowd.steps)["row"].tolist()
        ends = [event["rank"] for event in store.events(["rank_end"])]
    assert numbers == list(range(crowd.steps))
    assert sorted(ends) == [0, 1, 2, 3]
    assert [host.uplink.dropped for host in crowd.hosts] == [0, 0]


def test_a_slow_link_that_is_cut_in_the_middle(hub: Hub, link: Link, crowd: Crowd) -> None:
    """Cut while the hub's answer is on its way: neither that batch nor the next is lost or doubled."""
    link.delay_s = 0.1
    crowd.run_for(1.2)
    taken = len(hub.pipeline.taken)
    crowd.hosts[0].send()
    until(lambda: len(hub.pipeline.taken) > taken)
    crowd.hosts[1].send()
    link.cut()
    before = arrived(hub)
    crowd.run_for(1.0)
    assert arrived(hub) == before
    link.delay_s = 0.2
    link.mend()
    crowd.run_for(0.5)
    ends_well(hub, crowd)


def test_a_link_that_goes_mute(hub: Hub, link: Link, crowd: Crowd) -> None:
    """No connection breaks, and nothing arrives: it is noticed, and all is sent anew."""
    crowd.run_for(1.1)
    until(lambda: len(arrived(hub)) == 4)
    link.mute = True
    crowd.run_for(1.0)
    link.cut()
    link.mend()
    ends_well(hub, crowd)


def test_a_link_that_breaks_again_and_again(hub: Hub, link: Link, crowd: Crowd) -> None:
    """Each time only what was not stored is sent again, until all of it is there."""
    link.delay_s = 0.05
    for _ in range(5):
        crowd.run_for(0.3)
        link.cut()
        link.mend()
    ends_well(hub, crowd)
