"""Samples of this host and of real processes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.agent import host, proc
from monitor.agent.host import HostSampler
from monitor.schema import keys_of

BUSY = "import time\nprint(1, flush=True)\nwhile True: sum(range(1000))"
FORKED = "if os.fork(): print(1, flush=True)\ntime.sleep(60)"


@pytest.fixture
def start() -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """`start(script)` runs a script until its first line is printed."""
    started: list[subprocess.Popen[str]] = []

    def run(script: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield run
    for process in started:
        for pid in proc.descendants(process.pid):
            os.kill(pid, 9)
        process.kill()
        process.communicate()


def sample_twice(sampler: HostSampler, seconds: float = 0.3) -> dict[str, float]:
    """The second sample: the first has no rates."""
    sampler.process(0)
    time.sleep(seconds)
    row = sampler.process(0)
    assert row is not None
    return row


def test_host_rows_have_the_schema_s_columns() -> None:
    """Every metric of origin "host" is there, and nothing else."""
    assert set(HostSampler().host()) == set(keys_of("host"))


def test_process_rows_have_the_schema_s_columns() -> None:
    """Every metric of origin "proc" is there, and nothing else."""
    sampler = HostSampler()
    sampler.watch(0, os.getpid())
    assert set(sampler.process(0) or {}) == set(keys_of("proc"))


def test_the_limit_is_the_host_s_memory_at_most() -> None:
    """Whatever a cgroup says, there is no more memory than there is."""
    row = HostSampler().host()
    assert 0 < row["memory_limit_mb"] <= row["host_memory_total_mb"]
    assert 0 < row["host_memory_used_mb"] < row["host_memory_total_mb"]


def test_usable_cpus_are_those_of_the_ranks(start: Callable[[str], Any]) -> None:
    """A rank bound to one CPU can use one, however many there are."""
    process = start(
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(1, flush=True); input()"
    )
    sampler = HostSampler()
    before = sampler.usable_cpus()
    sampler.watch(0, process.pid)
    assert before == len(os.sched_getaffinity(0))
    assert sampler.usable_cpus() == sampler.facts()["cpu"]["affinity"] == 1


def test_a_quota_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """1.5 CPUs' worth of time need two CPUs; the tighter of quota and affinity holds."""
    sampler = HostSampler()
    monkeypatch.setattr(sampler._cgroup, "cpu_quota", lambda: 0.5)
    assert sampler.usable_cpus() == 1


def test_rates_are_unknown_at_first(start: Callable[[str], Any]) -> None:
    """A rate needs two looks: the first row has NaN, not 0."""
    sampler = HostSampler()
    sampler.watch(0, start(BUSY).pid)
    row = sampler.process(0)
    assert row is not None
    assert math.isnan(row["main_cpu"])
    assert math.isnan(row["workers_cpu"])
    assert math.isnan(row["runq_share"])


def test_a_busy_process_is_seen_busy(start: Callable[[str], Any]) -> None:
    """CPU of the main process, in cores: what it got and what it waited for come to about one."""
    sampler = HostSampler()
    sampler.watch(0, start(BUSY).pid)
    row = sample_twice(sampler)
    waited = row["runq_share"] if not math.isnan(row["runq_share"]) else 0
    assert 0.05 < row["main_cpu"] < 1.2
    assert row["main_cpu"] + waited == pytest.approx(1, abs=0.3)
    assert row["workers_cpu"] == 0


def test_children_are_told_from_the_main_process(start: Callable[[str], Any]) -> None:
    """A child's CPU is the workers', not the main process's."""
    script = f"import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', {BUSY!r}]); c.wait()"
    sampler = HostSampler()
    sampler.watch(0, start(script).pid)
    row = sample_twice(sampler)
    assert row["workers_cpu"] > 0.05
    assert row["main_cpu"] < row["workers_cpu"]


def test_loader_workers_are_counted_by_torch_s_name_for_them(start: Callable[[str], Any]) -> None:
    """Where some children bear the name, the others are no workers."""
    script = """
import os, time
def names():
    pids = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    return [open(f"/proc/{pid}/comm").read() for pid in pids]
for name in ("pt_data_worker", "else", "pt_data_worker"):
    if os.fork() == 0:
        open("/proc/self/comm", "w").write(name)
        time.sleep(60)
    while names()[-1:] != [name + "\\n"]: pass
print(1, flush=True)
time.sleep(60)
"""
    sampler = HostSampler()
    sampler.watch(0, start(script).pid)
    assert (sampler.process(0) or {})["workers"] == 2
    assert len(sampler.children_of(0)) == 3


def test_without_that_name_copies_of_the_trainer_count(start: Callable[[str], Any]) -> None:
    """A forked child has its parent's arguments, a program it runs has others."""
    script = "import os, subprocess, time\nsubprocess.Popen(['sleep', '60'])\n" + FORKED
    process = start(script)
    sampler = HostSampler()
    sampler.watch(0, process.pid)
    assert (sampler.process(0) or {})["workers"] == 1


def test_tree_memory_counts_shared_pages_once(start: Callable[[str], Any]) -> None:
    """Parent and forked child share 60 MB: the tree has them once, resident memory twice."""
    script = "import os, time\nx = b'x' * 60_000_000\n" + FORKED
    process = start(script)
    sampler = HostSampler()
    sampler.watch(0, process.pid)
    row = sampler.process(0)
    assert row is not None
    assert 60 < row["tree_pss_mb"] < 100


def test_a_process_that_is_gone_has_no_row(start: Callable[[str], Any]) -> None:
    """Dead, reaped or not: no row, and no made-up zero."""
    process = start(BUSY)
    sampler = HostSampler()
    sampler.watch(0, process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    zombie = sampler.process(0)
    process.wait()
    assert (zombie, sampler.process(0)) == (None, None)


def test_a_kill_for_memory_is_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a count that rose since the last look, and that not long ago, explains a death."""
    sampler = HostSampler()
    counts = iter([4, 5, 5])
    monkeypatch.setattr(sampler, "_count_oom_kills", lambda: next(counts))
    sampler._oom_kills = 4
    assert [sampler.oom_killed_lately() for _ in range(2)] == [False, True]
    monkeypatch.setattr(host, "OOM_S", 0.0)
    assert not sampler.oom_killed_lately()


def test_io_wait_is_unknown_where_the_kernel_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delay accounting is off by default: then the share is NaN, never 0."""
    monkeypatch.setattr(proc, "delay_accounting", lambda: False)
    sampler = HostSampler()
    sampler.watch(0, os.getpid())
    assert math.isnan(sample_twice(sampler, 0.05)["io_wait_share"])


def test_shared_memory_that_is_not_there_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """No /dev/shm: NaN."""

    def missing(path: str) -> Any:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "statvfs", missing)
    assert math.isnan(HostSampler().host()["shm_total_mb"])


def test_shared_memory_is_what_lies_in_it(tmp_path: Path) -> None:
    """A file in /dev/shm is seen in use."""
    sampler = HostSampler()
    path = Path(f"/dev/shm/torchvitals-test-{os.getpid()}")
    before = sampler.host()["shm_used_mb"]
    path.write_bytes(bytes(20_000_000))
    try:
        assert sampler.host()["shm_used_mb"] - before == pytest.approx(20, abs=5)
    finally:
        path.unlink()
