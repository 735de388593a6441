"""Runs: those that a folder keeps, which one somebody means, and what people say of them."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from monitor import report
from monitor.diagnosis.core.ranking import ranked_forms
from monitor.report.measure import quick_measures
from monitor.runs import baselines, marks
from monitor.store import FILE_NAME, Store, StoreError

#: Runs whose summary is remembered for as long as their files do not change.
_REMEMBERED = 1_024
#: Points of a run's sparkline.
SPARK_POINTS = 32
LATEST = "latest"
#: Seconds after which a store that could not be read is tried again though its files are the same: what
#: kept it shut (a lock, no more files to be opened) may have gone.
AGAIN_S = 30.0
#: Stores looked into for runs that go on; one that does is written every second.
MAX_LIVE = 16
#: No run began later: year 5138.
LATEST_UNIX_S = 1e11

Hosts = dict[str, dict[str, float]]


class NoSuchRunError(LookupError):
    """No run, or several, are called so. The message says what to do, in one line."""


def folders(run_dir: Path) -> list[Path]:
    """Folders of all runs, newest first. Empty where there is no such folder."""
    try:
        with os.scandir(run_dir) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []
    # the name begins with the time; an empty store is one that is just being made
    return [run_dir / name for name in sorted(names, reverse=True) if any(_stamp(run_dir / name / FILE_NAME))]


def resolve(text: str, run_dir: Path) -> Path:
    """The folder of the run that somebody means.

    Args:
        text: a path (of the folder or its store), a run's id, the beginning of one, a run's name (the
            newest of that name), or "latest".
        run_dir: the folder that keeps the runs.

    Raises:
        NoSuchRunError: none, or several, are meant.
    """
    path = Path(text).expanduser()
    if path.name == FILE_NAME and path.is_file():
        return path.parent
    if (path / FILE_NAME).is_file():
        return path
    known = folders(run_dir)
    if text == LATEST and known:
        return known[0]
    for folder in known:
        if folder.name == text:
            return folder
    begun = [folder for folder in known if folder.name.startswith(text)]
    if len(begun) == 1:
        return begun[0]
    named = [folder for folder in known if _name(folder) == text]
    if named:
        return named[0]
    if begun:
        raise NoSuchRunError(
            f"{len(begun)} runs begin with {text!r}; give more of the name: see torchvitals ls"
        )
    raise NoSuchRunError(f"no run is called {text!r} in {run_dir}; see torchvitals ls, or give --run-dir")


def summaries(run_dir: Path) -> list[dict[str, Any]]:
    """All runs, newest first.

    Each has `run`, `name`, `status`, `exit`, `started_unix_s`, `steps`, `steps_per_s`, `duration_s`,
    `world_size`, `verdict` (see `diagnosis.verdict`), `finding` (code of the gravest that stands, or
    None), `spark` (steps a second over the run), `tags`, `note`, `archived`, `project` and `baseline`
    (whether it is its project's). One whose store cannot be read has `status` "unreadable" and `error`.
    """
    chosen = baselines.baselines(run_dir)
    found = [_summary(folder) for folder in folders(run_dir)]
    for run in found:
        run["baseline"] = chosen.get(run["project"]) == run["run"]
    return sorted(found, key=_began, reverse=True)


def live(run_dir: Path) -> list[dict[str, Any]]:
    """Runs that go on, newest first, without `baseline`: only stores written last are looked into.

    All of a folder with hundreds of runs takes a second to read for the first time.
    """
    recent = sorted(folders(run_dir), key=lambda folder: max(stamp(folder)), reverse=True)[:MAX_LIVE]
    found = [run for run in map(_summary, recent) if run["status"] in report.LIVE]
    return sorted(found, key=_began, reverse=True)


def summary(folder: Path) -> dict[str, Any]:
    """One run, as `summaries` has it, without `baseline`."""
    return _summary(folder)


def _summary(folder: Path) -> dict[str, Any]:
    summary, meta, hosts = _read_summary(folder, stamp(folder), int(time.monotonic() / AGAIN_S))
    complete = {**summary, **_marks(folder, _stamp(folder / marks.FILE_NAME))}
    if summary["status"] in report.OVER or meta is None:
        return complete
    why = report.lost(meta, hosts)
    return complete if why is None else {**complete, "status": "killed", "exit": {"reason": why}}


@lru_cache(_REMEMBERED)
def _marks(folder: Path, stamp: tuple[int, int]) -> dict[str, Any]:
    """A run's marks, as long as their file is the same."""
    return marks.marks(folder) if any(stamp) else dict(marks.NOTHING)


@lru_cache(_REMEMBERED)
def _read_summary(
    folder: Path, stamp: Any, _moment: int
) -> tuple[dict[str, Any], dict[str, Any] | None, Hosts]:
    """Summary, meta and hosts. A store that cannot be read is asked again in the next moment."""
    try:
        return _read(folder, stamp)
    except StoreError as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001  what a damaged store holds knows no bounds; others are fine
        why = f"{folder / FILE_NAME}: damaged ({type(error).__name__}: {str(error)[:200]})"
    return {**_described(folder, {"status": "unreadable"}), "error": why}, None, {}


@lru_cache(_REMEMBERED)
def _read(folder: Path, _stamp: Any) -> tuple[dict[str, Any], dict[str, Any], Hosts]:
    """The same, as long as the files are. Raises StoreError, and whatever a damaged store makes it."""
    with Store(folder / FILE_NAME) as store:
        meta, hosts = store.meta(), store.hosts()
        standing = [f["code"] for f in ranked_forms(store.findings()) if f.get("cleared_at_s") is None]
        complete = {
            **quick_measures(store),
            "finding": standing[0] if standing else None,
            "spark": _spark(store),
        }
    report.lost(meta, hosts)  # asked again whenever the run is listed: what it cannot read is told here
    return {**_described(folder, meta), **complete}, meta, hosts


def _described(folder: Path, meta: dict[str, Any]) -> dict[str, Any]:
    return {
        "run": folder.name,
        "name": meta.get("name") or folder.name,
        "status": str(meta.get("status") or "running"),
        "exit": meta.get("exit"),
        "started_unix_s": _time(meta.get("started_unix_s")),
        "world_size": meta.get("world_size", 1),
        "verdict": meta.get("verdict"),
        "steps": 0,
        "steps_per_s": None,
        "duration_s": None,
        "finding": None,
        "spark": [],
        "project": baselines.project({"name": folder.name, **meta}),
    }


def _began(run: dict[str, Any]) -> tuple[float, str]:
    return run["started_unix_s"] or 0.0, run["run"]


def _time(unix_s: Any) -> float | None:
    """A time as a store holds it; None where it is none that a run can have begun at."""
    return unix_s if isinstance(unix_s, int | float) and 0 <= unix_s < LATEST_UNIX_S else None


def _spark(store: Store) -> list[float | None]:
    """Steps a second, at most SPARK_POINTS over the whole run."""
    points = store.series("run", ["steps_per_s"], None, None, SPARK_POINTS)["series"]["steps_per_s"]["mean"]
    return [float(f"{value:.4g}") if isinstance(value, int | float) else None for value in points]


def stamp(folder: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """Changes whenever the run's store does."""
    store = folder / FILE_NAME
    return _stamp(store), _stamp(Path(f"{store}-wal"))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    # a reader leaves an empty write-ahead log behind, which says nothing
    return (found.st_mtime_ns, found.st_size) if found.st_size else (0, 0)


def _name(folder: Path) -> str | None:
    try:
        with Store(folder / FILE_NAME) as store:
            name = store.meta().get("name")
    except StoreError:
        return None
    return str(name) if name is not None else None
