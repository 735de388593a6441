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

from monitor import report
from monitor.batch import Batch, Block, from_bytes, to_bytes
from monitor.pipeline import Pipeline

KINDS = (
    "run agent attach fact epoch save log nan_loss loss_finite warn clip exception end rank_end run_end "
    "stack stall stall_over dropped no_gpu gpu_error live worker_died other_stack recompile anything"
).split()
FIELDS = (
    "rank step name value world_size started_unix_s config argv pid host_facts phase since_s code signal "
    "reason clean last_step last_phase text records type message epoch values alerts oom_kill threads thread"
).split()
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.lists(
    st.builds(
        lambda kind, t_s, fields: {**fields, "kind": kind, "t_s": t_s},
        st.sampled_from(KINDS),
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
        for events, blocks in given_batches:
            training.seq += 1
            odd = Batch(RUN, "h", training.seq, training.now_s, tuple(blocks), tuple(events))
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
        json.dumps(Pipeline(Path(folder)).snapshot(RUN), allow_nan=False)


@pytest.mark.parametrize("run", ["..", "../up", "a/b", ""])
def test_names_that_are_paths(tmp_path: Path, run: str) -> None:
    """No run's name leads out of the folder: such a name is no batch."""
    with pytest.raises(ValueError, match="run and host are names"):
        from_bytes(to_bytes(Batch(run, "h", 1, 0.0)))
