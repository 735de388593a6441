"""Batches that only an enemy, or a bug, would send: nothing raised, nothing lost of what is sound."""

from __future__ import annotations

import json
import logging
from array import array
from pathlib import Path
from typing import Any

import pytest
from batches import RUN, Training
from hypothesis import given, settings
from hypothesis import strategies as st
from scratch import scratch

from monitor import events, report
from monitor.batch import Batch, Block, from_bytes, to_bytes
from monitor.pipeline import Pipeline
from monitor.run_state import RunState
from monitor.store import FILE_NAME, Store

#: What the state is made of: no event may reach any of it by its name.
KINDS = [*events.KINDS, *vars(RunState("x")), *vars(RunState), "briefs", "anything"]
FIELDS = sorted(
    {name for fields in events.KINDS.values() for name in fields} | {*events.COMMON, "id", "host"}
)
#: Texts as JSON may bring them, half a pair of surrogates included.
TEXT = st.text(st.characters(codec=None), max_size=12)
FACTS = st.sampled_from(
    ["plan", "env", "cuda", "ddp", "loader/1", "model/1", "optimizer/1", "precision", "cpu"]
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.integers(0, 5) | st.floats() | TEXT | FACTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.lists(
    st.builds(
        lambda kind, t_s, fields: {**fields, "kind": kind, "t_s": t_s},
        st.sampled_from(KINDS) | TEXT,
        st.floats(-1e3, 1e6),
        st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=6),
    ),
    max_size=6,
)
STREAMS = st.sampled_from(["rank/0", "rank/7", "rank/x", "proc/0", "host/h", "gpu/h/0", "user/a", "run"])
COLUMN = st.lists(st.floats(width=32), min_size=3, max_size=3)
BLOCKS = st.lists(
    st.builds(
        lambda stream, first, t_s, columns: Block(
            stream, first, array("d", t_s), {key: array("f", values) for key, values in columns.items()}
        ),
        STREAMS,
        st.integers(0, 2**53 - 1) | st.integers(0, 50),
        st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3),
        st.dictionaries(
            st.sampled_from(["step_ms", "data_ms", "loss", "epoch", "rss_mb", "own"]), COLUMN, max_size=4
        ),
    ),
    max_size=4,
)


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """A detector may choke on nonsense; that is logged, and not what is asked here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, over values no training has
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(EVENTS, BLOCKS), min_size=1, max_size=5))
def test_anything_that_is_a_batch(given_batches: list[tuple[list[dict], list[Block]]]) -> None:
    """Whatever passes as a batch: take never raises, and every update and the report are JSON."""
    with scratch() as folder:
        updates: list[dict] = []
        pipeline = Pipeline(
            Path(folder), publish=lambda _, update: updates.append(update), alert=lambda *_: None
        )
        training = Training()
        pipeline.take(training.start())
        for told, blocks in given_batches:
            training.seq += 1
            odd = Batch(RUN, "h", training.seq, training.now_s, tuple(blocks), tuple(told))
            pipeline.take(from_bytes(to_bytes(odd)))
        stream = training.batch(25).blocks[0]
        training.seq += 1
        mine = Block("rank/5", stream.first, stream.t_s, stream.columns)
        pipeline.take(Batch(RUN, "h", training.seq, training.now_s, (mine,)))
        for update in updates:
            json.dumps(update, allow_nan=False)
        json.dumps(pipeline.snapshot(RUN), allow_nan=False)
        assert pipeline.last_seq(RUN, "h") == training.seq
        pipeline.close()
        found = report.build(Path(folder) / RUN)
        json.dumps(found, allow_nan=False)
        assert report.text(found)
        assert report.summary(found)
        again = Pipeline(Path(folder))
        json.dumps(again.snapshot(RUN), allow_nan=False)
        assert again.last_seq(RUN, "h") == training.seq  # the run is restored, to go on with
        again.close()


@pytest.mark.parametrize("kind", ["briefs", "columns", "beat", "brief\ud800", ""])
def test_a_kind_that_nobody_declared(tmp_path: Path, kind: str) -> None:
    """An event of any kind harms nobody: an unknown one is kept and counted, one that is no name refused."""
    pipeline, training = Pipeline(tmp_path), Training()
    pipeline.take(training.start())
    pipeline.take(from_bytes(to_bytes(training.batch(5, training.event(kind, rank=0, step=3)))))
    pipeline.take(training.batch(5))
    pipeline.close()
    with Store(tmp_path / RUN / FILE_NAME) as store:
        kept, meta = [event["kind"] for event in store.events()], store.meta()
    sound = kind.isalpha() and kind.isascii()
    assert (kind in kept) == sound
    assert meta["events_unknown"] == ({kind: 1} if sound else {})
    assert sum(meta["events_refused"].values()) == (0 if sound else 1)
    again = Pipeline(tmp_path)
    assert again.last_seq(RUN, "h") == training.seq
    again.close()
    assert report.build(tmp_path / RUN)["steps"] == 10


def test_nesting_without_end(tmp_path: Path) -> None:
    """What JSON reads may be nested deeper than Python can follow: the event is refused, its batch is not."""
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    pipeline, training = Pipeline(tmp_path), Training()
    pipeline.take(training.start())
    pipeline.take(training.batch(5, training.event("fact", name="x", value=deep)))
    assert pipeline.last_seq(RUN, "h") == training.seq
    pipeline.close()
    with Store(tmp_path / RUN / FILE_NAME) as store:
        assert store.meta()["events_refused"] == {"fact": 1}


@pytest.mark.parametrize("run", ["..", "../up", "a/b", ""])
def test_names_that_are_paths(tmp_path: Path, run: str) -> None:
    """No run's name leads out of the folder: such a name is no batch."""
    with pytest.raises(ValueError, match="run and host are names"):
        from_bytes(to_bytes(Batch(run, "h", 1, 0.0)))
