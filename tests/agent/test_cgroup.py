"""Limits in made-up hierarchies of both versions, and in the one this test runs in."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.agent.cgroup import Cgroup

V2_MOUNT = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
V1_MOUNTS = (
    "31 20 0:28 {top} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 20 0:29 {top} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
)


def tree(root: Path, groups: str, mounts: str, files: dict[str, str]) -> Cgroup:
    """A hierarchy below `root`; `files` are relative to /sys/fs/cgroup."""
    process = root / "proc" / "7"
    process.mkdir(parents=True)
    (process / "cgroup").write_text(groups)
    (process / "mountinfo").write_text(mounts)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Cgroup(7, root)


def test_version_2_the_tightest_level_holds(tmp_path: Path) -> None:
    """A limit above the process's own group counts when it is the smaller one."""
    group = tree(
        tmp_path,
        "0::/slice/job\n",
        V2_MOUNT,
        {
            "slice/job/memory.max": "max\n",
            "slice/job/memory.current": "100\n",
            "slice/memory.max": "5000\n",
            "slice/memory.current": "900\n",
            "slice/job/cpu.max": "400000 100000\n",
            "slice/cpu.max": "150000 100000\n",
        },
    )
    assert (group.memory_limit(), group.memory_used(), group.cpu_quota()) == (5000, 900, 1.5)


def test_version_2_without_limits(tmp_path: Path) -> None:
    """No limit is None, not a large number; use is the process's own group's."""
    files = {"job/memory.max": "max\n", "job/memory.current": "100\n", "job/cpu.max": "max 100000\n"}
    group = tree(tmp_path, "0::/job\n", V2_MOUNT, files)
    assert (group.memory_limit(), group.memory_used(), group.cpu_quota()) == (None, 100, None)


def test_version_1(tmp_path: Path) -> None:
    """Controllers mounted one by one, limits in their own files, "no limit" as a huge number."""
    group = tree(
        tmp_path,
        "4:memory:/job\n3:cpu,cpuacct:/job\n",
        V1_MOUNTS.format(top="/"),
        {
            "memory/job/memory.limit_in_bytes": "2000\n",
            "memory/job/memory.usage_in_bytes": "1500\n",
            "memory/memory.limit_in_bytes": "9223372036854771712\n",
            "cpu,cpuacct/job/cpu.cfs_quota_us": "250000\n",
            "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            "cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
    )
    assert (group.memory_limit(), group.memory_used(), group.cpu_quota()) == (2000, 1500, 2.5)


def test_inside_a_container_only_the_part_below_the_mount_is_seen(tmp_path: Path) -> None:
    """The path is the host's, the mount shows the container's own group as its top."""
    group = tree(
        tmp_path,
        "4:memory:/docker/abc\n",
        V1_MOUNTS.format(top="/docker/abc"),
        {"memory/memory.limit_in_bytes": "3000\n", "memory/memory.usage_in_bytes": "7\n"},
    )
    assert (group.memory_limit(), group.memory_used()) == (3000, 7)


def test_a_path_outside_the_namespace_ends_at_the_mount(tmp_path: Path) -> None:
    """`/../..` says that the group lies outside of what is seen here; no file outside is read."""
    group = tree(tmp_path, "0::/../../other\n", V2_MOUNT, {"memory.max": "4000\n"})
    assert group.memory_limit() == 4000


@pytest.mark.parametrize(
    ("groups", "mounts", "name"),
    [
        ("0::/job\n", V2_MOUNT, "job/memory.events"),
        ("4:memory:/job\n", V1_MOUNTS.format(top="/"), "memory/job/memory.oom_control"),
    ],
)
def test_kills_for_memory_are_counted(tmp_path: Path, groups: str, mounts: str, name: str) -> None:
    """Both versions count them in a line `oom_kill N`."""
    group = tree(tmp_path, groups, mounts, {name: "oom 9\noom_kill_disable 0\noom_kill 3\n"})
    assert group.oom_kills() == 3


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    """No /proc, no mounts, no files: nothing is known, and nothing raises."""
    group = Cgroup(7, tmp_path)
    assert group.memory_limit() is group.memory_used() is group.cpu_quota() is group.oom_kills() is None


@pytest.mark.parametrize("text", ["", "max", "-1", "many", "5 0"])
def test_odd_files_are_no_limit(tmp_path: Path, text: str) -> None:
    """A file with something else in it than expected is as good as none."""
    group = tree(tmp_path, "0::/job\n", V2_MOUNT, {"job/memory.max": text, "job/cpu.max": text})
    assert group.memory_limit() is group.cpu_quota() is None


def test_here() -> None:
    """The real hierarchy of this process gives whole, positive numbers or nothing."""
    group = Cgroup()
    for value in (group.memory_limit(), group.memory_used(), group.cpu_quota()):
        assert value is None or value > 0
