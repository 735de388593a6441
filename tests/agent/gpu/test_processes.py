"""Whose a device is: this run's share and others', and nothing where nobody can tell."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from monitor.agent.gpu.processes import NAMED, Held, named, occupancy

from .conftest import ONE, Ask, but


def shares(*held: Held, ours: tuple[int, ...] = (1, 2)) -> tuple[float, float, float]:
    row = occupancy(held, ours)
    return row["gpu_own_memory_mb"], row["gpu_others_memory_mb"], row["gpu_others_util"]


def test_ours_and_others() -> None:
    """Memory and use of several processes on each side are added up."""
    held = Held(1, 100, 30), Held(2, 50, 20), Held(7, 400, 25), Held(8, 10, None)
    assert shares(*held) == (150, 410, 25)


def test_alone_on_the_device() -> None:
    """Then the others' share is 0, which was measured."""
    assert shares(Held(1, 100, 30)) == (100, 0, 0)


@pytest.mark.parametrize("held", [(), (Held(70, 5000, 99),)])
def test_where_ours_are_not_seen_nobody_can_tell(held: tuple[Held, ...]) -> None:
    """Inside a container the driver numbers processes its own way, or shows none."""
    assert all(math.isnan(value) for value in shares(*held))
    assert named(held, (1, 2)) == []


def test_what_is_not_told_is_not_added_as_nothing() -> None:
    """One unknown amount makes the sum unknown."""
    own, others, used = shares(Held(1, 100), Held(7, None))
    assert (own, math.isnan(others), math.isnan(used)) == (100, True, True)


def test_others_are_named() -> None:
    """The largest first, a few of them, by pid and name."""
    me = os.getpid()
    others = named([Held(1, 1), Held(me, 500), *(Held(10**7 + n, n) for n in range(20))], (1,))
    assert len(others) == NAMED
    assert others[0]["pid"] == me
    assert others[0]["name"]
    assert (others[1]["pid"], others[1]["name"]) == (10**7 + 19, "")


def test_the_driver_s_list(ask: Ask, state: Path) -> None:
    """A process may be listed twice, its use is that of the newest sample, and an unknown amount is NaN."""
    state.write_text(but(
        ONE, u0_procs="41:2000000000,41:1000000000,97:900000000", u0_procutil="41:60:10,97:5:10,97:15:20"
    ))  # fmt: skip
    row = ask("sample", [41])["0"]
    assert (row["gpu_own_memory_mb"], row["gpu_others_memory_mb"], row["gpu_others_util"]) == (3000, 900, 15)
    state.write_text(but(ONE, u0_procs="41:2000000000,97:?", u0_procutil="41:60:10,97:5:10,97:15:20"))
    row = ask("sample", [41])["0"]
    assert math.isnan(row["gpu_others_memory_mb"])
    assert math.isnan(row["gpu_others_util"]), "nothing newer was told"
