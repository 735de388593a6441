"""Restore: a run's state from its store, so that a hub that starts anew goes on where the last one was."""

from __future__ import annotations

from array import array

import numpy as np

from monitor.batch import Block
from monitor.run_state import EVENTS, RANK_ROWS, SAMPLE_ROWS, RunState
from monitor.run_state.rank_timeline import COLUMNS, KEYS
from monitor.run_state.run_aggregate import RunAggregator
from monitor.store import Store

#: Rows that are read of one stream. Enough for every detector, and quick. Of a host's briefs about an hour of
#: eight ranks: what lies before is missing in the picture of all ranks.
STEPS, SAMPLES, BRIEFS = RANK_ROWS // 8, SAMPLE_ROWS // 4, 32_768


def restore(run: str, store: Store) -> RunState:
    """The state of a run as its store knows it. Raises StoreError."""
    state = RunState(run)
    meta = store.meta()
    for host in store.hosts():
        state.agents.setdefault(host, {})
    state.about.update({key: meta[key] for key in state.about if meta.get(key) is not None})
    state.host_facts.update(meta.get("host_facts") or {})
    state.clocks.shifts.update(meta.get("shifts") or {})
    state.unknown.update(meta.get("events_unknown") or {})
    state.refused.update(meta.get("events_refused") or {})
    for event in store.last_events(limit=EVENTS):
        state.note(event, str(event.get("host") or meta.get("host") or next(iter(state.agents), "")))
    _facts(state, store)
    # A host's briefs come last: they count only for ranks that have no rows of their own.
    for stream, rows in sorted(store.streams().items(), key=lambda item: item[0].startswith("brief/")):
        if rows:
            _rows(state, store, stream)
    state.now_s = max([state.now_s, *(host["sent_s"] for host in store.hosts().values())])
    for number, rank in state.ranks.items():
        state.aggregator.skip(number, rank.steps)
    return state


def _facts(state: RunState, store: Store) -> None:
    for scope, facts in store.facts().items():
        kind, _, name = scope.partition("/")
        if kind == "rank" and name.isdigit():
            state.rank(int(name)).facts.update(facts)
        else:
            state.host_facts.setdefault(name, {}).update(facts)


def _rows(state: RunState, store: Store, stream: str) -> None:
    span = store.span(stream)
    assert span is not None
    keys = store.keys(stream)
    count = {"rank": STEPS, "brief": BRIEFS}.get(stream.partition("/")[0], SAMPLES)
    held = store.rows(stream, keys, span["last_row"] - count + 1, span["last_row"])
    if stream.startswith("rank/") and len(held["row"]) and int(held["row"][0]) > span["first_row"]:
        _earlier(state, store, stream, float(held["t_s"][0]))
    if stream == "run":
        state.aggregator = RunAggregator(span["last_row"] + 1, span["last_t_s"])
    gaps = np.flatnonzero(np.diff(held["row"]) != 1) + 1
    for part in np.split(np.arange(len(held["row"])), gaps):
        columns = {key: array("f", held[key][part]) for key in keys}
        block = Block(stream, int(held["row"][part[0]]), array("d", held["t_s"][part]), columns)
        if stream == "run":
            state.own.append(block.first, block.t_s, block.columns)
        else:
            state.add(block)


def _earlier(state: RunState, store: Store, stream: str, until_s: float) -> None:
    """What a rank did before the rows that are read, in points."""
    number = stream.partition("/")[2]
    if not number.isdigit():
        return
    earlier = store.series(stream, KEYS, None, until_s, COLUMNS)
    columns: dict[str, list[float]] = {"steps": earlier["rows"]}
    for key, points in earlier["series"].items():
        columns[key] = [value if isinstance(value, float) else float("nan") for value in points["mean"]]
    state.timeline.add(int(number), earlier["t"], columns)
