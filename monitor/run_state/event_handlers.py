"""What an event changes in a run's state, one function a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from monitor.events import Event

if TYPE_CHECKING:
    from monitor.run_state import RunState

#: Events of ranks with higher numbers are stored, and change nothing in memory.
RANKS = 10_000

#: What a `run` event tells of the run, and what kind of value it is.
_ABOUT: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "started_unix_s": (int, float),
    "world_size": int,
    "config": dict,
    "argv": list,
    "host": str,
    "cwd": str,
    "python": str,
}


def _on_run(state: RunState, event: Event, host: str) -> None:
    """The first host to tell of the run is believed; the others only add what it left out."""
    first = len(state.agents) <= 1
    for key, kinds in _ABOUT.items():
        value = event.get(key)
        if isinstance(value, kinds) and not isinstance(value, bool) and (first or key not in state.about):
            state.about[key] = value
    state.about["world_size"] = min(max(state.about["world_size"], 1), RANKS)
    if event.get("thread"):
        state.add_notice("thread_agent")


def _on_agent(state: RunState, event: Event, host: str) -> None:
    state.agents[host] = {"pid": event.get("pid"), "version": event.get("version")}
    state.done_hosts.discard(host)
    if isinstance(event.get("host_facts"), dict):
        state.host_facts[host] = event["host_facts"]


def _on_attach(state: RunState, event: Event, host: str) -> None:
    rank = state.rank(_number(event))
    rank.ended = rank.failed = None
    rank.process = {"pid": event.get("pid"), "host": host}
    state.done_hosts.discard(host)
    if isinstance(event.get("world_size"), int):
        state.about["world_size"] = min(max(state.about["world_size"], event["world_size"]), RANKS)


def _on_fact(state: RunState, event: Event, host: str) -> None:
    if event.get("rank") is None:
        state.host_facts.setdefault(host, {})[str(event.get("name"))] = event.get("value")
    else:
        state.rank(_number(event)).facts[str(event.get("name"))] = event.get("value")


def _on_live(state: RunState, event: Event, host: str) -> None:
    rank = state.rank(_number(event))
    if isinstance(event.get("phase"), str):
        since_s = event.get("since_s")
        rank.phase = (
            event["phase"],
            float(since_s if isinstance(since_s, int | float) else event["t_s"]),
        )
    if isinstance(event.get("step"), int):
        rank.step = max(rank.step, event["step"] - 1)


def _on_exception(state: RunState, event: Event, host: str) -> None:
    state.rank(_number(event)).failed = f"{event.get('type')}: {event.get('message')}"


def _on_rank_end(state: RunState, event: Event, host: str) -> None:
    rank = state.rank(_number(event))
    rank.ended = {**event, "rank": _number(event)}
    if isinstance(event.get("last_phase"), str):
        rank.phase = (event["last_phase"], float(event["t_s"]))


def _on_run_end(state: RunState, event: Event, host: str) -> None:
    state.done_hosts.add(host)


def _on_nan_loss(state: RunState, event: Event, host: str) -> None:
    state.loss_is_nan = True


def _on_loss_finite(state: RunState, event: Event, host: str) -> None:
    state.loss_is_nan = False


def _on_warn(state: RunState, event: Event, host: str) -> None:
    state.add_notice(str(event.get("text", ""))[:200])


def _on_dropped(state: RunState, event: Event, host: str) -> None:
    state.add_notice("records_dropped")


def _number(event: Event) -> int:
    rank = event.get("rank")
    return rank if isinstance(rank, int) and 0 <= rank < RANKS else 0


#: Kind -> what it does; (state, event, host of the agent that sent it). Other kinds change nothing.
HANDLERS: Mapping[str, Callable[[RunState, Event, str], None]] = {
    "run": _on_run,
    "agent": _on_agent,
    "attach": _on_attach,
    "fact": _on_fact,
    "live": _on_live,
    "exception": _on_exception,
    "rank_end": _on_rank_end,
    "run_end": _on_run_end,
    "nan_loss": _on_nan_loss,
    "loss_finite": _on_loss_finite,
    "warn": _on_warn,
    "dropped": _on_dropped,
}


def handle(state: RunState, event: Event, host: str) -> None:
    """Change the state as the event says, which may be not at all."""
    handler, rank = HANDLERS.get(event["kind"]), event.get("rank")
    if handler is not None and not (isinstance(rank, int) and rank >= RANKS):
        handler(state, event, host)
