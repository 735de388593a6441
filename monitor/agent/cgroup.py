"""Limits that a container or a scheduler sets: memory and CPU, cgroup versions 1 and 2.

A limit may stand on any level from the process's own group up to the mount point, and the tightest
one holds.
"""

from __future__ import annotations

from pathlib import Path

#: Version 1 writes "no limit" as the largest page-aligned int64; anything near it is none.
UNLIMITED = 1 << 60


class Cgroup:
    """The groups of one process.

    Args:
        pid: the process; "self" for this one.
        root: stands for / (tests hand in a tree of their own).
    """

    def __init__(self, pid: int | str = "self", root: Path = Path("/")) -> None:
        groups = _groups(_text(root / "proc" / str(pid) / "cgroup"))
        mounts = _mounts(_text(root / "proc" / str(pid) / "mountinfo"))
        self._memory = _levels(root, "memory", groups, mounts)
        self._cpu = _levels(root, "cpu", groups, mounts)

    def memory_limit(self) -> int | None:
        """Bytes that the process's group may use; None where there is no limit."""
        return min((limit for limit, _ in self._limited()), default=None)

    def memory_used(self) -> int | None:
        """Bytes charged to the group that has the tightest limit (its own one without a limit)."""
        limited = self._limited()
        folders = [min(limited)[1]] if limited else self._memory[:1]
        for folder in folders:
            return _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
        return None

    def cpu_quota(self) -> float | None:
        """CPUs' worth of time per second; None where there is no quota."""
        quotas = [quota for folder in self._cpu if (quota := _quota(folder)) is not None]
        return min(quotas, default=None)

    def oom_kills(self) -> int | None:
        """Processes of this group that were killed for memory since it exists."""
        for folder in self._memory:
            for name in ("memory.events", "memory.oom_control"):
                for line in _text(folder / name).splitlines():
                    if line.startswith("oom_kill "):
                        return int(line.split()[1])
        return None

    def _limited(self) -> list[tuple[int, Path]]:
        found = ((_limit(folder), folder) for folder in self._memory)
        return [(limit, folder) for limit, folder in found if limit is not None]


def _limit(folder: Path) -> int | None:
    limit = _number(folder / "memory.max")
    if limit is None:
        limit = _number(folder / "memory.limit_in_bytes")
    return limit if limit is not None and limit < UNLIMITED else None


def _quota(folder: Path) -> float | None:
    parts = _text(folder / "cpu.max").split()
    if not parts:
        parts = [_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    try:
        quota, period = int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        return None
    return quota / period if quota > 0 and period > 0 else None


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _groups(text: str) -> dict[str, str]:
    """Controller -> path of the group; "" is the unified hierarchy."""
    found = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _mounts(text: str) -> dict[str, tuple[str, str]]:
    """Controller -> (mount point, the group that is mounted there); "" is the unified hierarchy."""
    found: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, behind = before.split(), after.split()
        if len(fields) < 5 or len(behind) < 3:
            continue
        if behind[0] == "cgroup2":
            found.setdefault("", (fields[4], fields[3]))
        elif behind[0] == "cgroup":
            for option in behind[2].split(","):
                found.setdefault(option, (fields[4], fields[3]))
    return found


def _levels(
    root: Path, controller: str, groups: dict[str, str], mounts: dict[str, tuple[str, str]]
) -> list[Path]:
    """Folders of the process's group and of all above it, its own first."""
    levels: list[Path] = []
    for name in (controller, ""):
        if name not in groups or name not in mounts:
            continue
        point, top = mounts[name]
        path = groups[name]
        # Inside a container the path may be the host's, of which only the part below the mount is seen.
        if top != "/" and (path + "/").startswith(top + "/"):
            path = path[len(top) :]
        base = root / point.lstrip("/")
        parts = [part for part in path.split("/") if part and part != ".."]
        levels += [base.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return levels
