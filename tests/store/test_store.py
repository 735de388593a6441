"""What describes a run: meta, events, facts, findings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.batch import Batch
from monitor.store import Store, StoreError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "s", create=True) as made:
        yield made


def send(store: Store, seq: int, *events: dict) -> None:
    store.append(Batch("r", "h", seq, 2.5, (), events))


def test_meta(store: Store) -> None:
    """Values are replaced by name, and what JSON has no word for becomes text."""
    store.set_meta(name="a", config={"lr": float("nan"), "path": Path("/x")})
    store.set_meta(name="b")
    assert store.meta() == {"name": "b", "config": {"lr": "NaN", "path": "/x"}}


def test_meta_with_batch(store: Store) -> None:
    """Meta that comes with a batch is stored with it, once."""
    batch = Batch("r", "h", 1, 2.5)
    store.append(batch, meta={"status": "running"})
    store.append(batch, meta={"status": "ignored, for the batch was there"})
    assert store.meta() == {"status": "running"}


def test_hosts(store: Store) -> None:
    """Each host's last batch is known by number, run time and arrival."""
    send(store, 3)
    assert store.hosts()["h"].keys() == {"seq", "sent_s", "received_unix_s"}
    assert store.hosts()["h"]["seq"] == 3


def test_events_in_pages(store: Store) -> None:
    """Events come in order, in pages, and by kind."""
    for seq in range(1, 6):
        send(store, seq, {"kind": "save", "t_s": seq}, {"kind": "epoch", "t_s": seq, "epoch": seq})
    page = store.events(["epoch"], limit=2)
    rest = store.events(["epoch"], after=page[-1]["id"])
    assert [event["epoch"] for event in page + rest] == [1, 2, 3, 4, 5]
    assert [event["t_s"] for event in store.last_events(limit=3)] == [4, 5, 5]
    assert [event["t_s"] for event in store.last_events(["save"], limit=2)] == [4, 5]
    assert len(store.events()) == 10


def test_facts(store: Store) -> None:
    """The newest fact of a name wins, per rank and host."""
    fact = {"kind": "fact", "t_s": 1.0, "name": "loader/1"}
    send(store, 1, {**fact, "rank": 0, "value": {"num_workers": 0}}, {**fact, "rank": 1, "value": 1})
    send(store, 2, {**fact, "rank": 0, "value": {"num_workers": 2}}, {**fact, "host": "n1", "value": 3})
    assert store.facts() == {
        "rank/0": {"loader/1": {"num_workers": 2}},
        "rank/1": {"loader/1": 1},
        "host/n1": {"loader/1": 3},
    }
    assert store.events() == []


def test_findings(store: Store) -> None:
    """A finding is updated in place; raised anew after it was cleared, it is another one."""
    first = {"code": "stall", "cause": "loader", "raised_at_s": 5.0, "cleared_at_s": None}
    store.save_finding(first)
    store.save_finding({**first, "cleared_at_s": 9.0})
    store.save_finding({**first, "raised_at_s": 20.0})
    store.save_finding({**first, "code": "nan_loss", "raised_at_s": 1.0})
    assert [(f["code"], f["raised_at_s"], f["cleared_at_s"]) for f in store.findings()] == [
        ("nan_loss", 1.0, None),
        ("stall", 5.0, 9.0),
        ("stall", 20.0, None),
    ]


def test_event_that_is_no_json(store: Store) -> None:
    """A text in the file that is no JSON is said to be damaged."""
    send(store, 1, {"kind": "save", "t_s": 1.0})
    store._db.sql.execute("UPDATE event SET data = '{'")
    with pytest.raises(StoreError, match="damaged"):
        store.events()


def test_number_too_large(store: Store) -> None:
    """A number beyond what SQLite holds is refused in one line."""
    with pytest.raises(StoreError):
        send(store, 2**70)
