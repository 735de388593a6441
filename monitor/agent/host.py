"""Samples of the host and of each rank's process tree. What cannot be read is NaN.

1 MB is a million bytes here and everywhere.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field
from typing import Any

import psutil

from monitor.agent import proc
from monitor.agent.cgroup import Cgroup

MB = 1e6
#: Seconds between two looks for new or gone children.
CHILDREN_S = 2.0
#: Proportional memory is summed at most this often, and rarely enough to cost PSS_COST of a core.
PSS_S = 3.0
PSS_COST = 0.003
#: A kill for memory this shortly before a death is taken as its reason, in seconds.
OOM_S = 15.0

NAN = math.nan


@dataclass
class _Tree:
    """What is remembered of one rank between two samples."""

    pid: int
    at_s: float = NAN
    main_cpu_s: float = NAN
    run_queue_ns: int | None = None
    blkio_ticks: int = 0
    children: list[int] = field(default_factory=list)
    children_at_s: float = -math.inf
    children_cpu_s: dict[tuple[int, int], float] = field(default_factory=dict)
    workers: int = 0
    pss_mb: float = NAN
    pss_due_s: float = -math.inf


class HostSampler:
    """Reads the host and the watched ranks. One sample costs about a millisecond."""

    def __init__(self) -> None:
        self._cgroup = Cgroup()
        self._trees: dict[int, _Tree] = {}
        self._cpus = psutil.cpu_count() or 1
        self._delays = proc.delay_accounting()
        self._oom_kills = self._count_oom_kills()
        self._oom_at_s = -math.inf
        psutil.cpu_percent(None)

    def watch(self, rank: int, pid: int) -> None:
        """Sample this rank from now on. Limits are read where it lives."""
        self._trees[rank] = _Tree(pid)
        self._cgroup = Cgroup(pid)
        self._oom_kills = self._count_oom_kills()

    def forget(self, rank: int) -> None:
        """The rank has ended."""
        self._trees.pop(rank, None)

    def children_of(self, rank: int) -> list[tuple[int, int]]:
        """Its descendants as last seen: pid and start ticks."""
        tree = self._trees.get(rank)
        return list(tree.children_cpu_s) if tree else []

    def oom_killed_lately(self) -> bool:
        """Whether a process of the ranks' cgroup was killed for memory in the last OOM_S seconds."""
        now, before = self._count_oom_kills(), self._oom_kills
        if now is not None and before is not None and now > before:
            self._oom_at_s = time.monotonic()
        self._oom_kills = now
        return time.monotonic() - self._oom_at_s < OOM_S

    def facts(self) -> dict[str, Any]:
        """What stays the same: CPUs, memory, limits."""
        quota, limit = self._cgroup.cpu_quota(), self._cgroup.memory_limit()
        total = psutil.virtual_memory().total
        return {
            "cpu": {
                "logical": self._cpus,
                "affinity": self._affinity(),
                "quota": quota,
                "usable": self.usable_cpus(),
            },
            "memory": {
                "total_mb": total / MB,
                "limit_mb": min(limit or total, total) / MB,
                "limited_by": "cgroup" if limit is not None and limit < total else "host",
            },
            "system": {"kernel": os.uname().release, "machine": os.uname().machine},
        }

    def usable_cpus(self) -> int:
        """min(CPUs the ranks may run on, cgroup quota rounded up); quotas share out time, not CPUs."""
        quota = self._cgroup.cpu_quota()
        return max(1, min(self._affinity(), math.ceil(quota) if quota else self._cpus))

    def host(self) -> dict[str, float]:
        """One row of `host/NAME`."""
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        limit, charged = self._cgroup.memory_limit(), self._cgroup.memory_used()
        self.oom_killed_lately()
        return {
            "cpu_used": psutil.cpu_percent(None) / 100 * self._cpus,
            "cpu_usable": float(self.usable_cpus()),
            "host_memory_used_mb": (memory.total - memory.available) / MB,
            "host_memory_total_mb": memory.total / MB,
            "memory_limit_mb": min(limit or memory.total, memory.total) / MB,
            "cgroup_memory_mb": NAN if charged is None else charged / MB,
            "swap_used_mb": swap.used / MB,
            **_shared_memory(),
        }

    def process(self, rank: int) -> dict[str, float] | None:
        """One row of `proc/R`; None when the process is gone."""
        tree, now_s = self._trees[rank], time.monotonic()
        main = proc.stat(tree.pid)
        if main is None:
            return _without_proc(tree.pid)
        if main.state == "Z":
            return None
        elapsed_s = now_s - tree.at_s
        if now_s - tree.children_at_s >= CHILDREN_S:
            self._find_children(tree, now_s)
        row = {
            "rss_mb": main.rss_bytes / MB,
            "threads": float(main.threads),
            "workers": float(tree.workers),
            "main_cpu": (main.cpu_s - tree.main_cpu_s) / elapsed_s,
            "workers_cpu": self._children_cpu_s(tree) / elapsed_s,
            "runq_share": _waited_ns(tree) / 1e9 / elapsed_s,
            "io_wait_share": NAN,
            "tree_pss_mb": self._pss_mb(tree, now_s),
        }
        if self._delays:
            row["io_wait_share"] = (main.blkio_ticks - tree.blkio_ticks) / proc.TICKS / elapsed_s
        tree.at_s, tree.main_cpu_s, tree.blkio_ticks = now_s, main.cpu_s, main.blkio_ticks
        return row

    def _find_children(self, tree: _Tree, now_s: float) -> None:
        ranks = {other.pid for other in self._trees.values()}
        found = proc.descendants(tree.pid, frozenset({*ranks, os.getpid()}))
        if set(found) != set(tree.children):
            tree.pss_due_s = min(tree.pss_due_s, now_s + CHILDREN_S)
        tree.children, tree.children_at_s = found, now_s
        tree.workers = _count_workers(tree.pid, found)

    def _children_cpu_s(self, tree: _Tree) -> float:
        """CPU time the children used since the last sample. One that is new counts from its start."""
        used_s, seen = 0.0, {}
        for pid in tree.children:
            found = proc.stat(pid)
            if found is not None:
                key = (pid, found.start_ticks)
                seen[key] = found.cpu_s
                used_s += found.cpu_s - tree.children_cpu_s.get(key, 0.0)
        tree.children_cpu_s = seen
        return used_s

    def _pss_mb(self, tree: _Tree, now_s: float) -> float:
        # Between two measurements the last one stands.
        if now_s >= tree.pss_due_s:
            parts = [proc.pss_bytes(pid) for pid in (tree.pid, *tree.children)]
            known = [part for part in parts if part is not None]
            tree.pss_mb = sum(known) / MB if parts[0] is not None else NAN
            cost_s = time.monotonic() - now_s
            tree.pss_due_s = now_s + max(PSS_S, cost_s / PSS_COST)
        return tree.pss_mb

    def _affinity(self) -> int:
        if not hasattr(os, "sched_getaffinity"):
            return self._cpus
        allowed = set().union(*(_allowed_cpus(tree.pid) for tree in self._trees.values()))
        return len(allowed or _allowed_cpus(0)) or self._cpus

    def _count_oom_kills(self) -> int | None:
        count = self._cgroup.oom_kills()
        if count is not None:
            return count
        for line in (proc.read("/proc/vmstat") or b"").splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
        return None


def _allowed_cpus(pid: int) -> set[int]:
    try:
        return os.sched_getaffinity(pid)
    except OSError:
        return set()


def _waited_ns(tree: _Tree) -> float:
    now, before = proc.run_queue_ns(tree.pid), tree.run_queue_ns
    tree.run_queue_ns = now
    return NAN if now is None or before is None else now - before


def _count_workers(pid: int, children: list[int]) -> int:
    """Loader workers: those torch has named; before it did, copies of the trainer and spawned ones."""
    names = [found.name for child in children if (found := proc.stat(child)) is not None]
    named = names.count(proc.WORKER_NAME)
    if named or not children:
        return named
    own = proc.command_line(pid)
    return sum(_looks_like_worker(proc.command_line(child), own) for child in children)


def _looks_like_worker(command: list[str], own: list[str]) -> bool:
    return bool(command) and (command == own or any("spawn_main" in part for part in command))


def _shared_memory() -> dict[str, float]:
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108 - looked at, not written to
    except OSError:
        return {"shm_used_mb": NAN, "shm_total_mb": NAN}
    unit = found.f_frsize / MB
    return {"shm_used_mb": (found.f_blocks - found.f_bfree) * unit, "shm_total_mb": found.f_blocks * unit}


def _without_proc(pid: int) -> dict[str, float] | None:
    """What psutil knows where there is no /proc (macOS): memory and threads of the main process."""
    if os.path.isdir("/proc/self"):
        return None
    try:
        process = psutil.Process(pid)
        row = {"rss_mb": process.memory_info().rss / MB, "threads": float(process.num_threads())}
    except psutil.Error:
        return None
    missing = ("workers", "main_cpu", "workers_cpu", "runq_share", "io_wait_share", "tree_pss_mb")
    return {**row, **dict.fromkeys(missing, NAN)}
