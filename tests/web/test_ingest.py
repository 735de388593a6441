"""The agents' door."""

from __future__ import annotations

import queue
from collections.abc import Callable

import pytest
import socketio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import until
from webhub import INGEST, VIEWER, Hub, make_batch

from monitor.batch import to_bytes
from monitor.web.ingest import Ingest


def test_a_batch_is_stored_and_answered_with_its_number(hub: Hub):
    """What an agent sends reaches the pipeline, and the answer says which batch it was."""
    agent = hub.agent("run-2")
    assert agent.call("batch", to_bytes(make_batch("run-2", seq=1)), namespace="/ingest") == {"seq": 1}
    assert [(b.run, b.seq) for b in hub.pipeline.taken] == [("run-1", 1), ("run-2", 1)]


def test_an_agent_is_told_what_the_store_has(hub: Hub):
    """After a reconnect an agent sends only what is missing: `welcome` names the last batch stored."""
    welcomes: queue.Queue[dict[str, int]] = queue.Queue()
    hub.agent("run-1", on={"welcome": welcomes.put})
    assert welcomes.get(timeout=5) == {"seq": 1}


def test_welcome_comes_after_the_door_has_opened(hub: Hub):
    """A client that drops what arrives before it is in still gets its welcome."""
    order: list[str] = []
    agent = hub.agent(
        "run-1", on={"connect": lambda: order.append("in"), "welcome": lambda _: order.append("welcome")}
    )
    until(lambda: len(order) == 2)
    assert order == ["in", "welcome"]
    assert agent.connected


@pytest.mark.parametrize("token", [VIEWER, "", None, 7, INGEST + "x", INGEST[:-1], "é" * 32])
def test_no_other_token_lets_an_agent_in(hub: Hub, token: object):
    """The viewer's token, half a token, and no token are all refused, with words."""
    assert "token" in hub.refusal("/ingest", {"token": token, "run": "run-1", "host": "box"})
    assert hub.services.ingest.agents == 0


@pytest.mark.parametrize("run", ["../x", "", ".", "..", "a/b", "a\n", "x" * 129, None, 3, "a\0"])
def test_no_run_is_named_like_a_path(hub: Hub, run: object):
    """A run's name can lead nowhere."""
    assert "names" in hub.refusal("/ingest", {"token": INGEST, "run": run, "host": "box"})


@pytest.mark.parametrize("sent", [("run-1", "box"), ("run-2", "other")])
def test_a_connection_brings_batches_of_its_own_run_and_host_only(hub: Hub, sent: tuple[str, str]):
    """An agent cannot write into another's run."""
    agent = hub.agent("run-2", "box")
    answer = agent.call("batch", to_bytes(make_batch(*sent, seq=9)), namespace="/ingest")
    assert "another run or host" in answer["error"]
    assert len(hub.pipeline.taken) == 1


def test_a_bad_batch_is_refused_and_the_next_one_taken(hub: Hub):
    """A damaged batch costs nothing but itself; the answer does not ask for it again."""
    agent = hub.agent("run-2")
    answer = agent.call("batch", to_bytes(make_batch("run-2"))[:-3], namespace="/ingest")
    assert "shorter" in answer["error"]
    assert "retry" not in answer
    assert agent.call("batch", to_bytes(make_batch("run-2")), namespace="/ingest") == {"seq": 1}


def test_a_failing_hub_asks_for_the_batch_again(hub: Hub, caplog: pytest.LogCaptureFixture):
    """A full disk loses nothing: the agent is told to come again, and the hub's log says why."""
    agent = hub.agent("run-2")
    hub.pipeline.error = OSError("the disk is full")
    answer = agent.call("batch", to_bytes(make_batch("run-2")), namespace="/ingest")
    assert answer["retry"] is True
    assert "disk is full" in caplog.text
    hub.pipeline.error = None
    assert agent.call("batch", to_bytes(make_batch("run-2")), namespace="/ingest") == {"seq": 1}


@pytest.mark.parametrize("data", ["text", 7, None, {"a": 1}, [b"x"], [[1]]])
def test_what_is_not_bytes_is_no_batch(hub: Hub, data: object):
    """Anything else is answered with an error."""
    agent = hub.agent("run-2")
    assert "bytes" in agent.call("batch", data, namespace="/ingest")["error"]


@pytest.mark.parametrize("event", ["watch", "take", "emit", "__init__", "entered", "", "connect"])
def test_only_batches_are_taken(hub: Hub, event: str):
    """No event name reaches anything but the one handler."""
    agent = hub.agent("run-2")
    agent.emit(event, {"token": INGEST, "run": "run-1", "host": "box"}, namespace="/ingest")
    assert agent.call("batch", to_bytes(make_batch("run-2")), namespace="/ingest") == {"seq": 1}


def test_an_oversized_batch_ends_the_connection_only(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    """More bytes than a batch can have are not collected: the connection ends, the hub goes on."""
    agent = hub.agent("run-2")
    agent.emit("batch", b"x" * (9 * 1024 * 1024), namespace="/ingest")
    until(lambda: hub.services.ingest.agents == 0)
    assert hub.get("/healthz").status_code == 200


def test_a_gone_agent_leaves_nothing(hub: Hub):
    """A disconnected agent is no longer counted, so that an ephemeral hub may go."""
    agent = hub.agent("run-2")
    assert hub.services.busy
    agent.disconnect()
    until(lambda: not hub.services.busy)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300) | st.binary(max_size=60).map(lambda tail: b"\x02\x00\x00\x00{}" + tail))
def test_no_bytes_break_the_door(shared_agent: socketio.Client, data: bytes):
    """Whatever bytes an agent sends, the answer is an error and the connection lives."""
    answer = shared_agent.call("batch", data, namespace="/ingest")
    assert set(answer) == {"error"}
    assert "Traceback" not in answer["error"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_no_flipped_bit_breaks_the_door(shared_agent: socketio.Client, at: int, flip: int):
    """A batch with one damaged byte is taken or refused, and never asked for again."""
    good = bytearray(to_bytes(make_batch("run-2", seq=5)))
    good[at % len(good)] ^= flip
    answer = shared_agent.call("batch", bytes(good), namespace="/ingest")
    assert set(answer) in ({"error"}, {"seq"})


@pytest.fixture
def shared_agent(hub: Hub) -> socketio.Client:
    """One connection for all examples of a property."""
    return hub.agent("run-2")


def test_batches_are_taken_in_the_order_they_were_sent(hub: Hub):
    """One connection's batches never overtake one another."""
    agent, answers = hub.agent("run-2"), []
    for seq in range(1, 31):
        agent.emit(
            "batch", to_bytes(make_batch("run-2", seq=seq)), namespace="/ingest", callback=answers.append
        )
    until(lambda: len(answers) == 30)
    assert [answer["seq"] for answer in answers] == list(range(1, 31))


def test_no_welcome_is_better_than_a_wrong_one(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    """Where the store cannot be read, the agent is sent away to try again, and drops nothing."""

    def broken(*_: object) -> int:
        raise OSError("unreadable")

    monkeypatch.setattr(hub.pipeline, "last_seq", broken)
    agent = hub.agent("run-1")
    until(lambda: not agent.namespaces)


def test_a_failure_at_the_door_keeps_it_shut(start_hub: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch):
    """An error of our own while a client connects never lets it in."""
    hub = start_hub()
    monkeypatch.setattr(Ingest, "on_connect", lambda *_: 1 / 0)
    with pytest.raises(socketio.exceptions.ConnectionError):
        hub.agent("run-1")
    assert hub.services.ingest.agents == 0
