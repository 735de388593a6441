"""Writes finished runs into a run folder: real stores, with the steps and facts that a test asks for."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np

from monitor.batch import Batch, Block
from monitor.schema import PHASES, describe
from monitor.store import FILE_NAME, Store

#: What a DataLoader of the main process looks like.
LOADER = {
    "num_workers": 0, "batch_size": 16, "prefetch_factor": None, "persistent_workers": False,
    "pin_memory": False, "length": 100, "shuffle": True, "sampler": "RandomSampler", "dataset": "Digits",
    "location": "train.py:31", "call": "DataLoader(d, num_workers=0)", "role": "train",
}  # fmt: skip
#: Facts of a small training on two CPUs.
FACTS: dict[str, Any] = {
    "env": {
        "python": "3.11.7", "torch": "2.13.0", "cuda": None, "platform": "Linux", "cpu_capability": "AVX512",
        "threads": 1, "interop_threads": 2, "usable_cpus": 2, "omp_num_threads": None, "launcher_pid": 77,
        "rank": None, "restarts": 0,
    },
    "threads": {"threads": 1, "usable_cpus": 2},
    "loader/1": LOADER,
    "model/1": {
        "class": "Net", "parameters": 1000, "trainable": 1000, "dtypes": {"float32": 1000}, "device": "cpu",
        "compiled": False, "matmuls": [{"name": "fc", "elements": 100, "rows": None}],
    },
    "optimizer/1": {"class": "SGD", "lr": 0.1, "momentum": 0, "parameters": 1000, "location": "train.py:40"},
    "precision": {"autocast": False, "scaler": False, "backward_calls": 32, "clips": 0, "scaler_skips": 0},
    "script": {"name": "train.py", "digest": "aaaa"},
}  # fmt: skip


def steps(count: int = 400, ms: float = 50.0, *, noise: float = 0.1, seed: int = 0) -> np.ndarray:
    """Times of independent steps, in ms."""
    return ms * np.random.default_rng(seed).lognormal(0.0, noise, count)


def changed(name: str, **values: Any) -> dict[str, Any]:
    """FACTS with some values of one fact changed."""
    return {**FACTS, name: {**FACTS[name], **values}}


def finding(code: str = "data_starvation", cause: str = "num_workers=0", **about: Any) -> dict[str, Any]:
    """A finding in the contract's form, that promises twice the speed unless told otherwise."""
    return {
        "code": code, "severity": "warning", "title": "Training waits for data", "cause": cause,
        "evidence": {}, "advice": "", "snippet": None,
        "gain": {"speedup": 2.0, "share_of_step": 0.5, "basis": "waiting"}, "ranks": [0], "first_step": 20,
        "last_step": 99, "raised_at_s": 2.0, "cleared_at_s": None, "location": None, **about,
    }  # fmt: skip


def keep(
    run_dir: Path,
    run: str,
    step_ms: np.ndarray | None = None,
    *,
    facts: dict[str, Any] | None = None,
    findings: list[dict[str, Any]] | None = None,
    sampled: list[tuple[str, dict[str, float]]] | None = None,
    meta: dict[str, Any] | None = None,
    **columns: Any,
) -> Path:
    """Keep a finished run; returns its folder.

    Args:
        step_ms: each step's time; a column of a phase is the share that is given of it, else all is forward.
        sampled: (stream, values) of processes and hosts, one every second from the first on.
        columns: other metrics of every step: one value, or one for each.
    """
    times = steps() if step_ms is None else np.asarray(step_ms, dtype=float)
    parts = {key: np.broadcast_to(np.asarray(v, dtype=float), times.shape) for key, v in columns.items()}
    claimed = sum((v for key, v in parts.items() if key.removesuffix("_ms") in PHASES), np.zeros_like(times))
    full = {f"{phase}_ms": np.zeros_like(times) for phase in PHASES}
    full |= {"step_ms": times, "samples": np.full_like(times, 16.0), "forward_ms": times - claimed, **parts}
    block = Block(
        "rank/0", 0, array("d", np.cumsum(times) / 1e3), {k: array("f", v.tolist()) for k, v in full.items()}
    )
    blocks = [block] if times.size else []
    for stream, values in sampled or ():
        seconds = max(int(times.sum() / 1e3), 2)
        held = {key: array("f", [value] * seconds) for key, value in values.items()}
        blocks.append(Block(stream, 0, array("d", [1.0 + i for i in range(seconds)]), held))
    told = FACTS if facts is None else facts
    events = tuple(
        {"kind": "fact", "t_s": 0.0, "rank": 0, "name": name, "value": v} for name, v in told.items()
    )
    about = {
        "run": run, "name": run, "status": "finished", "world_size": 1, "started_unix_s": 1.8e9,
        "schema": describe(), "argv": ["train.py"], "config": {}, "host": "box", "hosts": ["box"],
        "exit": {"code": 0, "signal": None, "reason": "end of the script", "rank": 0}, **(meta or {}),
    }  # fmt: skip
    folder = run_dir / run
    with Store(folder / FILE_NAME, create=True) as store:
        store.append(Batch(run, "box", 1, 1.0, tuple(blocks), events), meta=about)
        store.save_findings(findings or [])
    return folder
