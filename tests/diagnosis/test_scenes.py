"""Whole runs as the zoo has them: the planted fault is told, and nothing beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from devices import on_gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import env, event, every, loader, rank, samples, window

from monitor.diagnosis.core.doctor import examine
from monitor.diagnosis.core.window import Window
from monitor.schema import PHASES

RANDOM = np.random.default_rng(7)
SCALER = {"autocast": True, "autocast_dtype": "float16", "scaler": True}


def swing(usual: float, count: int = 200, by: float = 0.15) -> np.ndarray:
    """A column that swings about its usual value as real ones do."""
    return usual * np.exp(RANDOM.normal(0, by, count))


def lengths(count: int = 160) -> np.ndarray:
    return RANDOM.uniform(16, 96, count)


def grown(mb_per_step: float, count: int = 150) -> dict[str, np.ndarray]:
    at = np.arange(20) * 0.125 + 1
    return {"t_s": at, "rss_mb": 400 + mb_per_step * (at - 1) / 0.016, "main_cpu": np.ones(20)}


def stacks(source: str, func: str = "main") -> dict[str, object]:
    frame = {"source": source, "func": func, "count": 8}
    return event("other_stack", total=8, frames=[frame])


LONG = lengths()
LATE = np.arange(400) >= 200
SETTLING = np.where(np.arange(150) < 12, 1.0, 0.0)
EPOCHS = {"epoch": np.repeat(np.arange(12), 12)}

HEALTHY: dict[str, Window] = {
    "gpu": replace(on_gpu(), finished=True),
    "gpu that waits a little for data": replace(on_gpu(data=3.0, gpu={"gpu_util": 88}), finished=True),
    "a host that is ahead of its gpu": replace(
        on_gpu(data=25.0, other=6.0, rows={"gpu_idle_ms": 0.4, "gpu_data_ms": 0.4}), finished=True
    ),
    "gpu whose memory is full": replace(
        on_gpu(rows={"cuda_reserved_mb": 79_000, "cuda_peak_mb": 72_000}, gpu={"gpu_memory_used_mb": 79_800}),
        finished=True,
    ),
    "gpu with mild heat": replace(
        on_gpu(gpu={"gpu_throttle_bits": 0x24, "gpu_sm_clock_mhz": 1_800}), finished=True
    ),
    "gpu in a container": replace(
        on_gpu(gpu=dict.fromkeys(("gpu_own_memory_mb", "gpu_others_memory_mb", "gpu_others_util"), np.nan)),
        finished=True,
    ),
    "baseline": window(data=swing(1.96), forward=swing(5.0), backward=swing(8.0), finished=True),
    "tiny": window(
        rank(
            5000, data=swing(0.18, 5000), forward=0.1, backward=0.08, optimizer=0.02,
            facts=loader(num_workers=0),
        ),
        finished=True,
    ),
    "accumulation": window(
        optimizer=every(4, 20.0, 0.0), optimizer_steps=every(4, 1.0, 0.0), forward=3, backward=4,
        finished=True,
    ),
    "variable length": window(
        rank(160, forward=LONG / 8, backward=LONG / 5, batch_elements=LONG * 1024), finished=True
    ),
    "evaluation": window(eval=every(40, 42.0, 0.0), finished=True),
    "saving": window(checkpoint=every(40, 45.0, 0.0), finished=True),
    "slow first step": window(data=np.where(np.arange(200) == 0, 3_400.0, 2.2), finished=True),
    "settling scale": window(
        rank(
            150, amp_skipped=SETTLING, optimizer_steps=1 - SETTLING, facts={**loader(), "precision": SCALER},
            loss_scale=np.maximum(2.0**30 * 0.5 ** np.arange(150), 2.0**18),
        ),
        finished=True,
    ),
    "bursts that the queue hides": window(data=every(40, 8.4, 2.3), finished=True),
    "lbfgs": window(rank(50, data=0, forward=35, backward=60, optimizer=7, facts={}), finished=True),
    "item every step": window(
        other=0.1, finished=True, events=[stacks("x.item()")],
    ),
    "curriculum": window(
        rank(
            400, forward=np.where(LATE, 15.0, 5.0), backward=np.where(LATE, 24.0, 8.0),
            batch_elements=1 + 2 * LATE,
        ),
        finished=True,
    ),
    "busy machine": window(
        rank(
            data=swing(9.0, by=0.8), forward=swing(20.0, by=0.6), backward=swing(30.0, by=0.6),
            samples=samples(40, runq_share=0.25, main_cpu=0.7, workers_cpu=0.2),
        ),
        finished=True, hosts={"here": samples(40, cpu_used=2.0, cpu_usable=2.0)},
    ),
    "persistent workers": window(
        rank(144, data=np.tile([6.0, *[1.5] * 11], 12), forward=2, backward=2, **EPOCHS), finished=True
    ),
    "cold first epoch": window(
        rank(120, data=np.where(np.arange(120) < 30, 60.0, 1.0), epoch=np.repeat(np.arange(4), 30)),
        finished=True,
    ),
}  # fmt: skip

FAULTY: dict[str, tuple[str, Window]] = {
    "a gpu that starves": (
        "data_starvation",
        replace(on_gpu(data=25.0, other=6.0, rows={"gpu_idle_ms": 22, "gpu_data_ms": 22, "gpu_gap_ms": 23},
                       gpu={"gpu_util": 48}), finished=True),
    ),
    "torn gpu memory": (
        "memory_fragmentation",
        replace(on_gpu(rows={"cuda_split_mb": 20_000, "cuda_peak_mb": 44_000, "cuda_reserved_mb": 66_000}),
                finished=True),
    ),
    "an emptied cache": (
        "empty_cache_churn",
        replace(on_gpu(rows={"cuda_device_allocs": 100, "cuda_device_frees": 100, "cuda_empty_cache": 20}),
                finished=True),
    ),
    "gpu memory that runs out": (
        "memory_pressure",
        replace(on_gpu(rows={"cuda_retries": 1}, hosts={"here": samples(memory_limit_mb=9)}), finished=True),
    ),
    "a hot gpu": (
        "gpu_throttled",
        replace(on_gpu(gpu={"gpu_throttle_bits": 0x44, "gpu_sm_clock_mhz": 1_100}), finished=True),
    ),
    "a gpu with company": (
        "gpu_shared",
        replace(on_gpu(gpu={"gpu_others_util": 40, "gpu_others_memory_mb": 9_000}), finished=True),
    ),
    "a broken gpu": (
        "gpu_error",
        replace(on_gpu(events=[event("gpu_error", gpu="0", xid=79, error="Xid 79")]), finished=True),
    ),
    "an idle gpu": ("gpu_underused", replace(on_gpu(gpu={"gpu_util": 25}), finished=True)),
    "launches": (
        "launch_bound",
        replace(on_gpu(rows={"gpu_caught_up": 1, "gpu_starved_ms": 45}, gpu={"gpu_util": 30}), finished=True),
    ),
    "reading without workers": (
        "data_starvation", window(data=swing(52.0), facts={**env(), **loader(num_workers=0)}, finished=True)
    ),
    "two slow workers": (
        "data_starvation", window(data=every(2, 146.0, 1.6), forward=2, backward=3, finished=True)
    ),
    "slow samples": ("data_spikes", window(data=every(12, 620.0, 1.6), forward=2, backward=2, finished=True)),
    "a growing scan": (
        "data_degrading",
        window(rank(140, data=np.linspace(0.2, 15, 140), forward=1, backward=1), finished=True),
    ),
    "respawning": (
        "worker_respawn",
        window(
            rank(
                144, data=np.tile([450.0, *[1.5] * 11], 12), forward=2, backward=2, **EPOCHS,
                facts=loader(persistent_workers=False),
            ),
            finished=True,
        ),
    ),
    "twelve workers": ("too_many_workers", window(facts={**env(), **loader(num_workers=12)}, finished=True)),
    "saving every step": ("checkpoint_stall", window(checkpoint=78.0, finished=True)),
    "heavy evaluation": ("eval_share", window(eval=every(10, 210.0, 0.0), finished=True)),
    "garbage": (
        "step_outliers",
        window(other=every(14, 350.0, 2.0), gc_ms=every(14, 348.0, 0.0), forward=2, finished=True),
    ),
    "anomaly detection": (
        "throughput_regression",
        window(
            rank(400, data=1.5, forward=1, backward=np.where(LATE, 9.0, 2.0), optimizer=0.5,
                 facts={**loader(), "anomaly_mode": {"on": True}}),
            finished=True,
        ),
    ),
    "threads": (
        "threads_oversubscribed",
        window(
            rank(facts=env(threads=16), samples=samples(runq_share=0.5, main_cpu=1.5)),
            hosts={"here": samples(cpu_used=1.9, cpu_usable=2.0)}, finished=True,
        ),
    ),
    "a leak": ("memory_leak", window(rank(150, samples=grown(4.0)), finished=True)),
    "a slow sink": (
        "logging_stall",
        window(
            other=40.0, finished=True,
            events=[stacks("time.sleep(0.04)", "log")],
        ),
    ),
    "items": (
        "host_sync",
        window(
            other=8.0, finished=True,
            events=[stacks("[t.mean().item(), 1]")],
        ),
    ),
    "skips": (
        "amp_skipped_steps",
        window(amp_skipped=every(8, 1.0, 0.0), optimizer_steps=every(8, 0.0, 1.0),
               facts={**loader(), "precision": SCALER}, finished=True),
    ),
    "a hung worker": (
        "stall",
        window(
            data=np.where(np.arange(200) == 70, 9_000.0, 1.9), finished=True,
            events=[event("stall", t_s=9.0, step=70, phase="data"), event("stall_over", t_s=12.0)],
        ),
    ),
    "a killed run": ("process_died", window(rank(ended={"signal": 9, "clean": False}), finished=True)),
}  # fmt: skip


def loud(one: Window) -> list[str]:
    """Codes of everything that is no mere advice."""
    return [finding.code for finding in examine(one).findings if finding.severity != "info"]


@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_a_healthy_run_raises_nothing(name: str):
    """Runs that look ill and are not: no warning."""
    assert loud(HEALTHY[name]) == []


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_a_fault_is_told_alone(name: str):
    """The planted fault, and nothing else at warning level."""
    code, one = FAULTY[name]
    assert loud(one) == [code]


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_no_check_fails(name: str):
    """No detector breaks on any scene."""
    assert [one for one in examine(FAULTY[name][1]).not_checked if "failed" in one["why"]] == []


@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_a_healthy_run_is_healthy_at_any_time(name: str):
    """Looked at after every tenth of its steps, a healthy run raises nothing on the way either."""
    one = HEALTHY[name]
    rank0 = one.ranks[0]
    for share in range(1, 10):
        part = {key: values[: rank0.count * share // 10] for key, values in rank0.steps.items()}
        early = replace(
            one, ranks={0: replace(rank0, steps=part)}, finished=False, now_s=float(part["t_s"][-1])
        )
        assert loud(early) == []


@given(name=st.sampled_from(sorted(FAULTY)), seed=st.integers(0, 999))
@settings(deadline=None, max_examples=60)
def test_noise_hides_and_invents_nothing(name: str, seed: int):
    """Every phase of every step swings by a few percent: the same is told."""
    code, one = FAULTY[name]
    noise, rank0 = np.random.default_rng(seed), one.ranks[0]
    steps = dict(rank0.steps)
    for phase in PHASES:
        steps[f"{phase}_ms"] = steps[f"{phase}_ms"] * noise.normal(1, 0.03, rank0.count)
    steps["step_ms"] = np.sum([steps[f"{phase}_ms"] for phase in PHASES], axis=0)
    assert loud(replace(one, ranks={0: replace(rank0, steps=steps)})) == [code]


@given(name=st.sampled_from(sorted(FAULTY)), others=st.integers(1, 3), at=st.integers(0, 3))
@settings(deadline=None, max_examples=40)
def test_it_does_not_matter_which_rank_is_ill(name: str, others: int, at: int):
    """One ill rank among healthy ones is told alike, whatever its number."""
    code, one = FAULTY[name]
    if code in ("too_many_workers", "threads_oversubscribed"):
        return  # ranks of a host share its CPUs, so their number matters
    at, wide = min(at, others), env(usable_cpus=64)
    ill = replace(one.ranks[0], rank=at, facts={**one.ranks[0].facts, **wide})
    well = {number: rank(ill.count, number, facts={**wide, **loader()}) for number in range(others + 1)}
    ranks = {**well, at: ill}
    events = [{**each, "rank": at} for each in one.events]
    assert loud(replace(one, ranks=ranks, events=events, world_size=others + 1)) == [code]
