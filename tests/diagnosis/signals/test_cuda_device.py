"""What a device did while a rank trained: the right rows, the right device, and means that count by steps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from devices import CUDA, ROW, SAMPLE, gpu_rank, half, on_gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import rank, samples, window

from monitor.diagnosis.core.doctor import examine
from monitor.diagnosis.signals import cuda_device
from monitor.diagnosis.signals.cpu_contention import sample_values
from monitor.diagnosis.signals.cuda_device import Allocator, Compute


def test_rows_are_of_training() -> None:
    """From the second row after the warm-up on, as counts are of the time before; none after the end."""
    one = gpu_rank(rows={"cuda_steps": np.arange(21)})
    late = replace(one, cuda={**one.cuda, "t_s": one.cuda["t_s"] + 15})
    assert cuda_device.cuda_rows(one)["cuda_steps"].tolist() == list(range(3, 21))
    assert cuda_device.cuda_rows(late)["t_s"].tolist() == [16, 17, 18, 19, 20, 21, 22]


def test_a_rank_without_a_device_has_no_rows() -> None:
    """And nothing of what is made from them."""
    one = rank()
    assert cuda_device.allocator(one) is None
    assert not cuda_device.launch_starved(one)
    assert math.isnan(cuda_device.per_step(cuda_device.cuda_rows(one), "cuda_allocs"))
    assert math.isnan(cuda_device.timed(cuda_device.cuda_rows(one), "gpu_step_ms"))
    assert cuda_device.capability(one) is None


def test_counts_are_per_step() -> None:
    """Rows are of a second each and of the steps that came in it; those that do not tell are left out."""
    table = {
        "t_s": np.arange(3),
        "cuda_steps": np.array([10, 30, 5]),
        "cuda_allocs": np.array([100, 500, np.nan]),
    }
    assert cuda_device.per_step(table, "cuda_allocs") == 15


def test_times_are_means_over_the_steps_that_were_timed() -> None:
    """A phase that a row does not have took no time in it."""
    table = {
        "t_s": np.arange(3),
        "gpu_timed": np.array([1, 3, np.nan]),
        "gpu_step_ms": np.array([8, np.nan, 50]),
    }
    assert cuda_device.timed(table, "gpu_step_ms") == 2


def test_the_allocator_is_that_of_the_newest_rows() -> None:
    """The median of three, so that one odd row is no state."""
    rows = {"cuda_reserved_mb": [10_000] * 18 + [60_000, 90_000, 70_000]}
    found = cuda_device.allocator(gpu_rank(rows=rows))
    assert found is not None
    assert (found.reserved, found.total) == (70_000, 80_000)
    assert cuda_device.allocator(gpu_rank(cuda={"total_mb": "many"}, rows=rows)).total != 80_000  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("allocator", "unneeded", "share"),
    [
        (Allocator(20, 100, 30, 60, 200), 40, 0.3),
        (Allocator(20, 100, 30, math.nan, 200), 30, 0.3),
        (Allocator(20, 100, 30, 120, 200), 0, 0.3),
        (Allocator(0, 0, 0, 0, 200), 0, 0),
    ],
)
def test_what_is_reserved_and_never_needed(allocator: Allocator, unneeded: float, share: float) -> None:
    """Beyond the most that was allocated; the pieces where that is not told; never less than nothing."""
    assert (allocator.unneeded, allocator.split_share) == (unneeded, share)


def test_compute_is_the_device_s_where_it_was_timed() -> None:
    """The host only launches; without timed steps its phases are all there is."""
    assert cuda_device.compute(gpu_rank()) == Compute(47, 0.94)
    host = cuda_device.compute(gpu_rank(rows={"gpu_timed": 0}))
    assert (host.ms, host.share) == (pytest.approx(18), pytest.approx(0.36))


def test_idleness_between_steps_leaves_waiting_for_data_out() -> None:
    """That belongs to the loader; never less than none."""
    table = cuda_device.cuda_rows(gpu_rank(rows={"gpu_gap_ms": 15, "gpu_data_ms": 5}))
    assert cuda_device.idle_share(table) == pytest.approx(0.2)
    assert (
        cuda_device.idle_share(cuda_device.cuda_rows(gpu_rank(rows={"gpu_gap_ms": 5, "gpu_data_ms": 9}))) == 0
    )


def listed(key: str, uuid: str) -> dict[str, Any]:
    return {"gpu": key, "uuid": uuid, "name": f"Board {key}", "others": []}


def test_a_rank_s_device_is_told_by_its_uuid() -> None:
    """However it is written, and whatever number CUDA gives it."""
    mine = gpu_rank(cuda={"uuid": "BB-11", "device": 0})
    seen = on_gpu(mine, gpus={"here/1": samples(21, 1.0, gpu_util=5)}, listed=[listed("1", "GPU-bb-11")])
    assert cuda_device.gpu_name(seen, mine) == "here/1"
    assert cuda_device.gpu_facts(seen, "here/1")["name"] == "Board 1"
    assert cuda_device.utilisation(cuda_device.gpu(seen, mine)[1])[0] == 5  # type: ignore[index]


def test_a_device_that_cannot_be_told_is_none() -> None:
    """The only one there is is taken for it; of two, none."""
    mine = gpu_rank(cuda={"uuid": None})
    two = on_gpu(mine, gpus={"here/1": samples(21, 1.0, **SAMPLE)})
    assert cuda_device.gpu_name(on_gpu(mine), mine) == "here/0"
    assert cuda_device.gpu(two, mine) is None
    assert cuda_device.gpu(window(mine), mine) is None
    assert cuda_device.on_devices(two) == {}


def test_ranks_that_share_a_device() -> None:
    """Are told together."""
    seen = on_gpu(gpu_rank(0), gpu_rank(1), gpu_rank(2, cuda={"uuid": "GPU-elsewhere"}),
                  gpus={"here/1": samples(21, 1.0, **SAMPLE)})  # fmt: skip
    assert {name: ranks for name, (_, ranks) in cuda_device.on_devices(seen).items()} == {"here/0": (0, 1)}


def test_samples_are_of_training() -> None:
    """What the device did before the warm-up was over does not count."""
    table = cuda_device.gpu(on_gpu(gpu={"gpu_util": half(80, 10)}), gpu_rank())
    assert table is not None
    assert table[1]["t_s"][0] == 2
    assert len(sample_values(table[1], "gpu_util")) == 19


def test_capability_is_nvidia_s() -> None:
    """Older probes told it with the environment; AMD's means something else."""
    assert cuda_device.capability(gpu_rank()) == (9, 0)
    assert cuda_device.capability(gpu_rank(cuda={"hip": "6.2"})) is None
    old = gpu_rank(facts={"cuda": {**CUDA, "capability": None}, "env": {"device_capability": [7, 0]}})
    assert cuda_device.capability(old) == (7, 0)


ODD = st.none() | st.text(max_size=3) | st.integers(-9, 9) | st.floats() | st.lists(st.integers(), max_size=2)


@given(st.dictionaries(st.sampled_from([*CUDA, "uuids", "hip", "empty_cache_location"]), ODD), ODD, ODD, ODD)
@settings(deadline=None, max_examples=60)
def test_whatever_a_probe_says_no_check_breaks(
    cuda: dict[str, Any], batch: Any, syncs: Any, gpus: Any
) -> None:
    """Odd facts are missing facts."""
    told = gpu_rank(cuda=cuda, facts={"batch/1": batch, "syncs": syncs})
    seen = replace(on_gpu(told), host_facts={"here": {"gpus": gpus}})
    assert [entry for entry in examine(seen).not_checked if "failed" in entry["why"]] == []


def columns(keys: dict[str, Any]) -> st.SearchStrategy[dict[str, float]]:
    return st.dictionaries(st.sampled_from([*keys]), st.floats(width=32), max_size=8)


@given(columns(ROW), columns(SAMPLE))
@settings(deadline=None, max_examples=60)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whatever_is_measured_no_check_breaks(rows: dict[str, float], gpu: dict[str, float]) -> None:
    """Infinite, negative or missing numbers end no check, and reach no finding as such."""
    found = examine(on_gpu(rows=rows, gpu=gpu))
    assert [entry for entry in found.not_checked if "failed" in entry["why"]] == []
