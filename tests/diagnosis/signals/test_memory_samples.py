"""What was held is told beside the step it was held at, from the end of the warm-up on."""

from __future__ import annotations

import numpy as np
from devices import gpu_rank
from windows import rank, samples, window

from monitor.diagnosis.core.window import Rank
from monitor.diagnosis.signals.memory_samples import AFTER_S, limit_mb, main_process, on_device, process_tree


def test_samples_know_their_step():
    """Training from 1 s on in steps of 16 ms: after 2 s it was at step 61 or so."""
    memory = main_process(rank(500, samples=samples(20, rss_mb=500.0)))
    assert memory.t_s[0] == 1.5
    assert round(float(memory.step[memory.t_s == 2.0][0])) == 62


def test_repeated_numbers_of_the_tree_are_left_out():
    """The tree is measured now and then: a number that is only repeated was not measured again."""
    tree = process_tree(rank(500, samples=samples(20, tree_pss_mb=np.repeat([1.0, 2.0, 3.0, 4.0], 5))))
    assert (tree.mb.tolist(), tree.t_s.tolist()) == ([1, 2, 3, 4], [1.5, 2.5, 5.0, 7.5])


def test_samples_after_the_last_step_do_not_count():
    """What the process does once training is over is not training; the very next sample still tells."""
    memory = main_process(rank(500, samples=samples(60, rss_mb=1.0)))
    assert memory.t_s[-1] == 9.0 + AFTER_S
    assert memory.step[-1] == 499


def test_what_a_process_lets_go_at_its_end_is_not_held_against_it():
    """A leak of a run of seconds would else seem to stop; a climb goes on after the last step."""
    climb = np.append(np.arange(19) * 50.0, [300.0])
    falls = main_process(rank(500, samples=samples(20, rss_mb=climb)))
    assert (falls.t_s[-1], falls.mb[-1]) == (9.0, 900.0)
    rises = main_process(rank(500, samples=samples(20, rss_mb=np.arange(20) * 50.0)))
    assert (rises.t_s[-1], rises.mb[-1]) == (9.5, 950.0)


def test_nothing_trained_is_nothing_held():
    """Before the end of the warm-up, and without samples."""
    assert [len(main_process(one)) for one in (Rank(0), rank(3), rank(100))] == [0, 0, 0]


def test_the_lowest_limit_counts():
    """Of several hosts the one that is full first; unknown limits are left out."""
    hosts = {
        "a": samples(memory_limit_mb=900.0),
        "b": samples(memory_limit_mb=800.0),
        "c": samples(memory_limit_mb=np.nan),
    }
    assert limit_mb(window(hosts=hosts)) == 800.0
    assert limit_mb(window()) is None


def test_what_torch_has_allocated_on_the_device():
    """By the probe's rows, and nothing where there are none."""
    memory = on_device(gpu_rank(rows={"cuda_allocated_mb": np.arange(21)}))
    assert memory.mb.tolist() == list(range(2, 22))[: len(memory)]
    assert memory.step[-1] > 370
    assert len(on_device(rank(500, samples=samples(20, rss_mb=500.0)))) == 0
