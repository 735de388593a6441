"""Latest wins. Time and the wire are stand-ins; everything else is real."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from waiting import until

from monitor.web.publisher import INTERVAL_S, LIST, LIST_INTERVAL_S, MAX_ROWS, Publisher


class Wire:
    """Keeps what was sent, as (viewer, event, data)."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.encoded = 0
        self.now = 100.0

    def send(self, viewers: list[str], event: str, data: Any) -> None:
        self.encoded += 1
        self.sent += [(viewer, event, data) for viewer in viewers]

    def to(self, viewer: str) -> list[int]:
        return [data["seq"] for who, event, data in self.sent if who == viewer and event == "update"]


def update(seq: int, rows: int = 1, **more: Any) -> dict[str, Any]:
    return {"seq": seq, "rows": {"run": {"t_s": [float(seq)] * rows, "x": [seq] * rows}}, **more}


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def publisher(wire: Wire) -> Iterator[Publisher]:
    made = Publisher(wire.send, lambda: [{"run": "r"}], lambda: wire.now)
    made.start()
    yield made
    made.close()


def watching(publisher: Publisher, *viewers: str, room: str = "r") -> None:
    """Viewers that have been sent the first state and have drawn it."""
    for viewer in viewers:
        assert publisher.enter(viewer, room)
        publisher.first(viewer, "update", update(0))
        publisher.acknowledged(viewer)


def publish(publisher: Publisher, wire: Wire, data: dict[str, Any], run: str = "r") -> None:
    """Publish half a second after the last time, and wait until it has been dealt with."""
    wire.now += LIST_INTERVAL_S
    publisher.publish(run, data)
    settle(publisher)


def settle(publisher: Publisher) -> None:
    with publisher._wake:
        publisher._wake.notify()
    until(lambda: not publisher._ready())


def test_an_update_is_encoded_once_for_all(publisher: Publisher, wire: Wire):
    """However many watch, the work of encoding is done once."""
    watching(publisher, "a", "b", "c")
    before = wire.encoded
    publish(publisher, wire, update(1))
    until(lambda: wire.to("c") == [0, 1])
    assert wire.encoded == before + 1
    assert wire.to("a") == wire.to("b") == [0, 1]


def test_a_viewer_that_never_acknowledges_gets_one_message(publisher: Publisher, wire: Wire):
    """What waits for a slow viewer is bounded: it owes, so it gets nothing more."""
    watching(publisher, "slow", "quick")
    for seq in range(1, 21):
        publish(publisher, wire, update(seq))
        until(lambda seq=seq: wire.to("quick")[-1] == seq)
        publisher.acknowledged("quick")
    assert wire.to("slow") == [0, 1]
    assert wire.to("quick") == list(range(21))


def test_a_viewer_that_catches_up_gets_the_newest(publisher: Publisher, wire: Wire):
    """Not the oldest of what it missed, and not all of it; the gap in seq tells it so."""
    watching(publisher, "slow")
    for seq in range(1, 10):
        publish(publisher, wire, update(seq))
    publisher.acknowledged("slow")
    until(lambda: wire.to("slow") == [0, 1, 9])
    assert wire.sent[-1][2]["first_seq"] == 9


def test_a_viewer_that_missed_nothing_is_sent_nothing_twice(publisher: Publisher, wire: Wire):
    """An acknowledgement alone sends nothing."""
    watching(publisher, "a")
    publish(publisher, wire, update(1))
    until(lambda: wire.to("a") == [0, 1])
    publisher.acknowledged("a")
    publisher.acknowledged("a")
    settle(publisher)
    assert wire.to("a") == [0, 1]


def test_two_updates_a_second_at_most_and_no_row_lost(publisher: Publisher, wire: Wire):
    """Updates that come faster are folded into one, which says from which number on."""
    watching(publisher, "a")
    publish(publisher, wire, update(1))
    publisher.acknowledged("a")
    for seq in (2, 3, 4):
        publisher.publish("r", update(seq))
    assert wire.to("a") == [0, 1]
    wire.now += INTERVAL_S
    settle(publisher)
    until(lambda: wire.to("a") == [0, 1, 4])
    data = wire.sent[-1][2]
    assert data["first_seq"] == 2
    assert data["rows"]["run"] == {"t_s": [2.0, 3.0, 4.0], "x": [2, 3, 4]}


def test_columns_that_come_and_go_stay_in_line(publisher: Publisher, wire: Wire):
    """A stream or column that only one of two folded updates has is filled up with null."""
    watching(publisher, "a")
    publish(publisher, wire, update(1))
    publisher.acknowledged("a")
    publisher.publish("r", {"seq": 2, "rows": {"run": {"t_s": [1.0], "x": [1]}, "gpu/box/0": {"t_s": [1.0]}}})
    publisher.publish("r", {"seq": 3, "rows": {"run": {"t_s": [2.0], "y": [2]}}})
    wire.now += INTERVAL_S
    settle(publisher)
    until(lambda: wire.to("a") == [0, 1, 3])
    rows = wire.sent[-1][2]["rows"]
    assert rows == {"run": {"t_s": [1.0, 2.0], "x": [1, None], "y": [None, 2]}, "gpu/box/0": {"t_s": [1.0]}}


def test_folded_rows_are_bounded(publisher: Publisher, wire: Wire):
    """A flood between two sends is not collected: the gap sends viewers to REST."""
    watching(publisher, "a")
    publish(publisher, wire, update(1))
    publisher.acknowledged("a")
    for seq in range(2, 8):
        publisher.publish("r", update(seq, rows=MAX_ROWS // 2))
    wire.now += INTERVAL_S
    settle(publisher)
    until(lambda: wire.to("a")[-1] == 7)
    data = wire.sent[-1][2]
    assert data["first_seq"] > 2
    assert len(data["rows"]["run"]["t_s"]) <= MAX_ROWS


def test_what_came_while_the_first_state_was_made_is_not_lost(publisher: Publisher, wire: Wire):
    """An update between entering and the first state follows it."""
    publisher.enter("a", "r")
    publish(publisher, wire, update(5))
    assert wire.sent == []
    publisher.first("a", "update", update(4))
    publisher.acknowledged("a")
    until(lambda: wire.to("a") == [4, 5])


def test_a_viewer_that_changes_rooms_hears_of_one_only(publisher: Publisher, wire: Wire):
    """Who watches another run gets nothing more of the first."""
    watching(publisher, "a")
    watching(publisher, "a", room="other")
    publish(publisher, wire, update(1))
    publish(publisher, wire, update(2), run="other")
    until(lambda: wire.to("a") == [0, 0, 2])


def test_who_owes_gets_the_new_rooms_state_after_it_acknowledged(publisher: Publisher, wire: Wire):
    """Jumping between runs without drawing cannot fill a queue."""
    publisher.enter("a", "r")
    publisher.first("a", "update", update(0))
    assert not publisher.enter("a", "other")
    publisher.first("a", "update", update(7))
    assert wire.to("a") == [0]
    assert publisher.acknowledged("a") == "other"


def test_nothing_is_kept_of_a_viewer_that_left(publisher: Publisher, wire: Wire):
    """Neither the viewer nor its room; publishing to an empty room keeps nothing either."""
    watching(publisher, "a")
    publisher.leave("a")
    publish(publisher, wire, update(1))
    assert wire.to("a") == [0]
    assert (publisher._viewers, publisher._rooms) == ({}, {})
    assert publisher.acknowledged("a") is None


def test_the_list_of_runs_is_sent_to_those_who_watch_it(publisher: Publisher, wire: Wire):
    """Any run's update renews it, at most every two seconds."""
    watching(publisher, "a", room=LIST)
    publish(publisher, wire, update(1), run="whatever")
    until(lambda: wire.sent[-1] == ("a", "runs", {"runs": [{"run": "r"}]}))
    count = len(wire.sent)
    publisher.acknowledged("a")
    publisher.publish("whatever", update(2))
    settle(publisher)
    assert len(wire.sent) == count


def test_publishing_never_waits_for_the_wire(wire: Wire):
    """A send that blocks holds up neither agents nor acknowledgements."""
    stuck, let_go = threading.Event(), threading.Event()

    def send(viewers: list[str], event: str, data: Any) -> None:
        if data["seq"] == 1:
            stuck.set()
            let_go.wait(10)

    publisher = Publisher(send, list, lambda: wire.now)
    publisher.start()
    watching(publisher, "a")
    publisher.publish("r", update(1))
    assert stuck.wait(5)
    done = run_aside(lambda: [publisher.publish("r", update(seq)) for seq in range(2, 2000)])
    assert done.wait(5)
    let_go.set()
    publisher.close()


def test_a_send_that_fails_stops_nothing(wire: Wire, caplog: pytest.LogCaptureFixture):
    """The next update goes out all the same."""

    def send(viewers: list[str], event: str, data: Any) -> None:
        if data["seq"] == 1:
            raise OSError("gone")
        wire.send(viewers, event, data)

    publisher = Publisher(send, list, lambda: wire.now)
    publisher.start()
    watching(publisher, "a")
    publish(publisher, wire, update(1))
    publisher.acknowledged("a")
    publish(publisher, wire, update(2))
    until(lambda: wire.to("a") == [0, 2])
    publisher.close()
    assert "could not publish" in caplog.text


def run_aside(work: Callable[[], Any]) -> threading.Event:
    done = threading.Event()
    threading.Thread(target=lambda: (work(), done.set()), daemon=True).start()
    return done
