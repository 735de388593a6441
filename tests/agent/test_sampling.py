"""Samples come at their rhythm, from their own thread, whatever hangs or breaks in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import finishes, until

from monitor.agent.follow import Followed, Follower
from monitor.agent.gpu import Wanted
from monitor.agent.sampling import Sampling

Train = Callable[..., Any]


@pytest.fixture
def sampling() -> Iterator[Sampling]:
    made = Sampling("here", 0.05)
    yield made
    made.stop()


@pytest.fixture
def tape(train: Train, spool: Path) -> Followed:
    train(steps=1, end="wait")
    return Follower(spool, 0).scan()[0]


def gather(sampling: Sampling, true: Callable[[list[Any]], bool]) -> list[Any]:
    """Samples until a condition holds of them."""
    found: list[Any] = []

    def enough() -> bool:
        found.extend(sampling.take()[0])
        return true(found)

    until(enough, "samples")
    return found


def streams(samples: list[Any]) -> set[str]:
    return {sample.stream for sample in samples}


def test_the_host_is_sampled_without_any_rank(sampling: Sampling) -> None:
    """Host rows come at once and at their rhythm."""
    sampling.start()
    found = gather(sampling, lambda samples: len(samples) >= 3)
    times = [sample.mono_ns for sample in found]
    assert streams(found) == {"host/here"}
    assert times == sorted(times)


def test_a_rank_is_sampled_until_it_is_forgotten(sampling: Sampling, tape: Followed) -> None:
    """Watched, its rows come; forgotten, they stop."""
    sampling.start()
    sampling.watch(tape)
    gather(sampling, lambda samples: "proc/0" in streams(samples))
    sampling.forget(tape)
    gather(sampling, lambda samples: len(samples) >= 2)
    assert "proc/0" not in streams(gather(sampling, lambda samples: len(samples) >= 2))


def test_a_rank_is_looked_at_more_often_in_its_first_seconds(tape: Followed) -> None:
    """A run may be over after three of them."""
    seldom = Sampling("here", sample_s=60.0)
    try:
        seldom.watch(tape)
        seldom.start()
        gather(seldom, lambda samples: [one.stream for one in samples].count("proc/0") >= 3)
    finally:
        seldom.stop()


def test_facts_of_the_host(sampling: Sampling) -> None:
    """CPUs, memory, limits and GPUs."""
    assert set(sampling.facts()) == {"cpu", "memory", "system", "gpus"}


def test_a_sample_that_breaks_is_told_and_the_next_one_taken(
    sampling: Sampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception ends one sample, not the sampling."""
    calls: list[int] = []
    real = sampling._host.host

    def broken() -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("odd file")
        return real()

    monkeypatch.setattr(sampling._host, "host", broken)
    sampling.start()
    events: list[dict[str, Any]] = []
    samples: list[Any] = []
    while not samples:
        more, told = sampling.take()
        samples, events = samples + more, events + told
        time.sleep(0.01)
    assert "RuntimeError: odd file" in [event.get("text", "")[-22:] for event in events]


def test_a_sample_that_hangs_keeps_nobody(sampling: Sampling, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that does not answer keeps neither the loop's `take`, nor the host's samples, nor an end."""
    hang = threading.Event()
    monkeypatch.setattr(sampling._gpu, "events", lambda: hang.wait() and [])
    sampling.start()
    assert streams(gather(sampling, lambda samples: len(samples) >= 3)) == {"host/here"}
    finishes(sampling.take)
    finishes(sampling.stop)
    hang.set()


def test_devices_follow_what_the_ranks_can_see(
    sampling: Sampling, tape: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The devices shown are chosen anew when a rank comes or tells more of itself."""
    chosen: list[Any] = []
    monkeypatch.setattr(sampling._gpu, "choose", chosen.append)
    monkeypatch.setattr(sampling._gpu, "sample", lambda ours: {})
    sampling.watch(tape)

    def look() -> None:
        sampling._obey()
        sampling._sample_gpus()

    look()
    tape.facts["env"] = {"cuda_visible_devices": "3"}
    look()
    look()
    tape.facts["cuda"] = {"uuid": "GPU-7"}
    look()
    assert [[(rank.uuids, rank.visible) for rank in ranks] for ranks in chosen[1:]] == [
        [((), "3")],
        [(("GPU-7",), "3")],
    ]


def test_a_device_is_told_whose_processes_are_ours(
    sampling: Sampling, tape: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rank and what it started; rows come under the device's name."""
    monkeypatch.setattr(sampling._host, "children_of", lambda rank: [(7, 1)])
    monkeypatch.setattr(sampling._gpu, "sample", lambda ours: {"0.1": {"gpu_util": float(len(ours))}})
    tape.facts["cuda"] = {"uuid": "GPU-7"}
    sampling.watch(tape)
    sampling._sample()
    sampling._sample_gpus()
    found = {sample.stream: sample.values for sample in sampling.take()[0]}
    assert sampling._ours() == {tape.pid, 7}
    assert found["gpu/here/0.1"] == {"gpu_util": 2}


def test_others_devices_are_not_shown_before_the_ranks_had_time_to_tell(
    sampling: Sampling, tape: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a rank none; with one that has told nothing, none for a while, then all there are."""
    monkeypatch.setattr(sampling._gpu, "sample", lambda ours: {"0": {}, "1": {}})

    def shown() -> int:
        sampling._sample_gpus()
        return len(sampling.take()[0])

    assert shown() == 0
    sampling.watch(tape)
    monkeypatch.setitem(tape.facts, "env", {})
    sampling._obey()
    sampling._wanted = [Wanted()]
    assert shown() == 0
    monkeypatch.setattr("monitor.agent.sampling.GRACE_S", 0.0)
    assert shown() == 2
