"""What was held is told beside the step it was held at, from the end of the warm-up on."""

from __future__ import annotations

import numpy as np
from windows import rank, samples, window

from monitor.diagnosis.memory import held, limit_mb
from monitor.diagnosis.window import Rank


def test_samples_know_their_step():
    """Training from 1 s on in steps of 16 ms: after 2 s it was at step 61 or so."""
    memory = held(rank(500, samples=samples(20, rss_mb=500.0)))
    assert memory.t_s[0] == 1.5
    assert round(float(memory.step[memory.t_s == 2.0][0])) == 62


def test_the_tree_falls_back_to_the_process():
    """Where the tree was not measured, the main process stands for it."""
    memory = held(rank(500, samples=samples(20, rss_mb=500.0, tree_pss_mb=np.nan)))
    assert (memory.tree_mb == 500).all()


def test_samples_after_the_last_step_do_not_count():
    """What the process does once training is over is not training."""
    assert held(rank(500, samples=samples(60, rss_mb=1.0))).t_s[-1] <= 9.0


def test_nothing_trained_is_nothing_held():
    """Before the end of the warm-up, and without samples."""
    assert len(held(Rank(0))) == len(held(rank(3))) == len(held(rank(100))) == 0


def test_the_lowest_limit_counts():
    """Of several hosts the one that is full first; unknown limits are left out."""
    hosts = {
        "a": samples(memory_limit_mb=900.0),
        "b": samples(memory_limit_mb=800.0),
        "c": samples(memory_limit_mb=np.nan),
    }
    assert limit_mb(window(hosts=hosts)) == 800.0
    assert limit_mb(window()) is None
