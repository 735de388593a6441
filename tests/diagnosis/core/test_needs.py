"""Needs say why a check cannot run, in words for a user."""

from __future__ import annotations

from dataclasses import replace

import pytest
from devices import gpu_rank, on_gpu
from windows import event, loader, rank, samples, window

from monitor.diagnosis.core.doctor import discover
from monitor.diagnosis.core.needs import NEEDS, SIGNALS_ALONE, absent
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.training_steps import MIN_STEPS, WARMUP_STEPS

NO_CUDA = "no CUDA device"
#: Checks that only a GPU can fail.
GPU_CODES = """
pin_memory_off tf32_off memory_fragmentation memory_headroom empty_cache_churn small_allocations launch_bound
gpu_underused gpu_throttled gpu_shared gpu_error
""".split()

FULL = replace(
    window(
        rank(60, number=1),
        rank(
            60,
            comm=1.0,
            epoch=[0] * 20 + [1] * 20 + [2] * 20,
            samples=samples(rss_mb=500.0),
            facts={
                **loader(),
                "precision": {"autocast": True, "scaler": True},
                "compile": {"used": True},
                "ddp": {"find_unused_parameters": True},
                "model/1": {"class": "Net"},
            },
        ),
        gpu_rank(2),
        rank(60, number=1, comm=2.0),
        events=[event("other_stack", total=1, frames=[])],
        hosts={"here": samples(cpu_used=1.0)},
    ),
    gpus=on_gpu().gpus,
)


@pytest.mark.parametrize("need", sorted(NEEDS))
def test_a_full_window_lacks_nothing(need: str):
    """Every need is met where everything was seen."""
    assert absent(frozenset({need}), FULL) is None


def test_a_recording_that_broke_off_sees_no_stall():
    """Said for the rank it broke off on; a stall of another rank is told all the same."""
    broken = event("warn", rank=1, text="monitoring is off: …", gave_up=True)
    assert absent(frozenset({"recording"}), window(events=[broken])) == "recording broke off on rank 1"
    assert absent(frozenset({"recording"}), window(events=[broken, event("stall", step=3)])) is None


@pytest.mark.parametrize("need", ["exchange", "ranks"])
def test_one_rank_exchanges_nothing(need: str):
    """Said as what it is, and not as fine."""
    assert absent(frozenset({need}), window(rank())) in ("no communication seen", "one rank only")


@pytest.mark.parametrize(("other", "met"), [(2.0, True), (4.0, False)])
def test_stacks_are_missed_only_where_they_could_tell_something(other: float, met: bool):
    """With little time outside the known phases there is nothing to look at."""
    assert (absent(frozenset({"other_stacks"}), window(other=other)) is None) == met


@pytest.mark.parametrize("need", sorted(set(NEEDS) - {"other_stacks", "recording", *SIGNALS_ALONE}))
def test_an_empty_window_lacks_everything(need: str):
    """Every need of an empty window is absent, with a reason."""
    assert absent(frozenset({need}), Window(0.0, {}))


@pytest.mark.parametrize(
    ("count", "met"), [(WARMUP_STEPS + MIN_STEPS - 1, False), (WARMUP_STEPS + MIN_STEPS, True)]
)
def test_steps_are_counted_after_the_warm_up(count: int, met: bool):
    """Steps of the warm-up do not count towards the least number."""
    assert (absent(frozenset({"steps"}), window(rank(count))) is None) == met


def test_workers_need_a_loader_that_has_some():
    """A loader without workers lacks workers, no loader at all lacks the loader."""
    assert absent(frozenset({"workers"}), window(facts=loader(num_workers=0))) == "no DataLoader workers"
    assert absent(frozenset({"workers"}), window(facts={})) == "no DataLoader seen"


def test_an_evaluation_loader_is_no_training_loader():
    """A loader that only evaluation draws from does not count."""
    assert absent(frozenset({"loader"}), window(facts=loader(role="eval"))) == "no DataLoader seen"


def test_the_first_absent_need_is_named():
    """Of several, the alphabetically first absent one gives the reason."""
    assert absent(frozenset({"steps", "loader"}), Window(0.0, {})) == "no DataLoader seen"


def test_an_unknown_need_is_a_programmers_mistake():
    """A need that does not exist is refused loudly."""
    with pytest.raises(KeyError):
        absent(frozenset({"luck"}), FULL)


@pytest.mark.parametrize("code", GPU_CODES)
def test_on_a_cpu_the_gpu_s_checks_say_why_they_did_not_run(code: str):
    """No CUDA device: in a run that trained well otherwise, and in an empty one."""
    needs = next(one.needs for one in discover() if one.code == code)
    assert absent(needs, replace(FULL, gpus={}, ranks={0: rank(60, samples=samples(rss_mb=1.0))})) == NO_CUDA
    assert absent(needs, Window(0.0, {})) == NO_CUDA


def test_a_device_that_tells_nothing_yet():
    """What is missing is named."""
    silent = replace(gpu_rank(), cuda={})
    seen = replace(on_gpu(), ranks={0: silent})
    assert absent(frozenset({"allocator"}), seen) == "nothing told of GPU memory after warm-up yet"
    assert absent(frozenset({"timing"}), on_gpu(rows={"gpu_timed": 0})) == "no step timed on the GPU yet"
    assert absent(frozenset({"batch"}), on_gpu(facts={"batch/1": 0})) is None


@pytest.mark.parametrize(("need", "signal"), [("loader", "data"), ("exchange", "comm"), ("loss", "loss")])
def test_a_lost_signal_is_the_reason(need: str, signal: str):
    """What nobody could measure is not called absent, and never fine."""
    found = window(rank(60, facts={**loader(), "signals_lost": {signal: "torch 9 has no such name"}}))
    assert absent(frozenset({need}), found) == "not measured: torch 9 has no such name"
