"""How far the hosts' clocks are apart is read from the collectives in which their ranks meet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gloo_ranks import run_ranks
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import rank, window

from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.clock_offsets import SCATTER_S, offsets
from monitor.tape.reader import TapeReader


def shifted(one: Rank, by_s: float, jitter_s: float = 0.0, seed: int = 0) -> Rank:
    """The same rank on a clock that is ahead by so much."""
    noise = np.random.default_rng(seed).normal(0.0, jitter_s, one.count) if jitter_s else 0.0
    return Rank(one.rank, {**one.steps, "t_s": one.steps["t_s"] + by_s + noise}, facts=one.facts)


@settings(max_examples=30, deadline=None)
@given(st.floats(-3600.0, 3600.0), st.floats(0.0, 0.003))
def test_a_clock_that_is_ahead_is_told_by_how_much(by_s: float, jitter_s: float) -> None:
    """Whatever the clocks say, and though steps end a little unevenly."""
    ranks = [rank(comm=20.0, number=0), shifted(rank(comm=20.0, number=1), by_s, jitter_s)]
    found = offsets(window(*ranks), {0: "a", 1: "b"})
    assert found["a"].ahead_s == 0.0
    assert found["b"].ahead_s == pytest.approx(by_s, abs=0.3 * jitter_s + 1e-6)


def test_what_comes_after_the_exchange_is_not_the_clocks_doing() -> None:
    """A rank whose optimizer takes longer ends its steps later, and its clock is right all the same."""
    one = rank(comm=20.0, optimizer=2.0, forward=30.0)
    slow = rank(comm=20.0, optimizer=9.0, forward=23.0, number=1)
    late = Rank(1, {**slow.steps, "t_s": one.steps["t_s"] + 0.007})
    assert offsets(window(one, late), {0: "a", 1: "b"})["b"].ahead_s == pytest.approx(0.0, abs=1e-6)


def test_ranks_of_one_host_are_one_clock() -> None:
    """One of them that does more between the steps does not move it."""
    ranks = [rank(comm=20.0, number=n) for n in range(6)]
    ranks[1] = shifted(ranks[1], 0.5)
    ranks[3:] = [shifted(one, 2.0) for one in ranks[3:]]
    found = offsets(window(*ranks), dict.fromkeys((0, 1, 2), "a") | dict.fromkeys((3, 4, 5), "b"))
    assert found["b"].ahead_s == pytest.approx(2.0, abs=1e-6)


def test_hosts_that_do_not_meet_are_not_compared() -> None:
    """Ranks without exchange, or whose steps have nothing to do with each other, tell nothing."""
    alone = window(rank(), rank(number=1))
    apart = window(rank(comm=20.0), shifted(rank(comm=20.0, number=1), 1.0, jitter_s=4 * SCATTER_S))
    assert offsets(alone, {0: "a", 1: "b"}) == {}
    assert "b" not in offsets(apart, {0: "a", 1: "b"})


def test_a_rank_whose_host_is_unknown_is_left_out() -> None:
    """Nothing is said of it."""
    assert set(offsets(window(rank(comm=20.0), rank(comm=20.0, number=1)), {1: "b"})) == {"b"}


BODY = """
model = DistributedDataParallel(nn.Linear(64, 64))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(32, 64)
for step in range(120):
    opt.zero_grad()
    model(x).sum().backward()
    opt.step()
    time.sleep(0.002 * (rank == step % 2))
"""


def test_real_ranks_whose_clock_is_set_forward(tmp_path: Path) -> None:
    """Two ranks over gloo, of which one's tape is read on a clock 7.25 s ahead: found to a part of a step."""
    told = run_ranks(tmp_path, BODY)
    ranks = []
    for number, seen in enumerate(told):
        reader = TapeReader(str(tmp_path / f"rank-{number}.tape"))
        ends = np.asarray(reader.read(0, 4096).end_ns) / 1e9 + 7.25 * number
        steps = {key: np.asarray(values) for key, values in seen.columns.items()}
        ranks.append(Rank(number, {"step": np.arange(len(ends)), "t_s": ends, **steps}))
    found = offsets(Window(0.0, dict(enumerate(ranks)), 2), {0: "a", 1: "b"})["b"]
    step_s = float(np.median(ranks[0].steps["step_ms"])) / 1e3
    assert found.ahead_s == pytest.approx(7.25, abs=step_s)
    assert found.within_s < step_s
