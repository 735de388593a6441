"""Trash: a deleted run is moved aside, can be brought back for an hour, and is then gone."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from typing import Any

from monitor.diagnosis.core.messages import message
from monitor.runs.marks import FILE_NAME as MARKS
from monitor.store import FILE_NAME as STORE

#: Folder of deleted runs, inside the folder that keeps runs: moving one there moves no bytes.
FOLDER = ".trash"
#: Seconds that a deleted run can be brought back.
GRACE_S = 3600.0
#: Files that we put into a run's folder. One that holds anything else is not deleted.
#: A `.part` is what a hub leaves that was killed while it wrote.
_OURS = re.compile(
    rf"{re.escape(STORE)}(-wal|-shm|-journal)?|{re.escape(MARKS)}(\.[\d-]{{1,64}}\.part)?"
    r"|stall-rank-\d{1,9}-step--?\d{1,19}\.txt"  # what on_stall leaves
)
#: Ten digits: seconds since 1970, as `delete` writes them. A folder "2024-11 thesis" is somebody's.
_DELETED = re.compile(r"(\d{10,12})-(.+)", re.DOTALL)


class KeptError(Exception):
    """The run stays where it is. The message says why, in one line, by `message`."""


def delete(folder: Path, now_unix_s: float | None = None) -> None:
    """Move a run into the trash. The caller knows that nobody writes it any more.

    Raises:
        KeptError: it is a link, or holds files that are not ours, or cannot be moved.
    """
    if folder.is_symlink():
        raise KeptError(message("{run} is a link; delete the folder that it leads to", run=folder.name))
    foreign = [entry.name for entry in os.scandir(folder) if not _OURS.fullmatch(entry.name)]
    if foreign:
        text = message(
            "{run} holds a file that is not torchvitals': {file!r}", run=folder.name, file=foreign[0]
        )
        raise KeptError(text)
    now = time.time() if now_unix_s is None else now_unix_s
    bin_ = folder.parent / FOLDER
    if bin_.is_symlink():
        raise KeptError(
            message("{folder} is a link; what is deleted must stay in this folder", folder=FOLDER)
        )
    try:
        bin_.mkdir(mode=0o700, exist_ok=True)
        folder.rename(bin_ / f"{now:.0f}-{folder.name}")
    except OSError as error:
        text = message("{run} cannot be moved: {why}", run=folder.name, why=error.strerror)
        raise KeptError(text) from error


def restore(run_dir: Path, run: str) -> Path:
    """Bring a deleted run back; returns its folder.

    Raises:
        KeptError: it is not in the trash (any more), or there is a run of its name again.
    """
    folders = [path for _, name, path in _deleted(run_dir) if name == run]
    if not folders:
        raise KeptError(
            message("{run!r} is not in the trash; deleted runs are kept for an hour", run=run[:128])
        )
    target = run_dir / folders[-1].name.partition("-")[2]
    if target.exists():
        raise KeptError(message("there is a run {run} again", run=target.name))
    try:
        return folders[-1].rename(target)
    except OSError as error:
        text = message("{run} cannot be brought back: {why}", run=target.name, why=error.strerror)
        raise KeptError(text) from error


def deleted(run_dir: Path) -> list[dict[str, Any]]:
    """Runs that can be brought back, newest first: `run` and `until_unix_s`."""
    found = [{"run": name, "until_unix_s": at + GRACE_S} for at, name, _ in _deleted(run_dir)]
    return found[::-1]


def empty(run_dir: Path, now_unix_s: float | None = None) -> None:
    """Remove for good what was deleted long enough ago. What cannot be removed stays for the next time."""
    now = time.time() if now_unix_s is None else now_unix_s
    for at, _, path in _deleted(run_dir):
        if now - at > GRACE_S and not path.is_symlink():
            _remove(path)


def _remove(folder: Path) -> None:
    """What we put there, and the folder if that was all. What somebody else put there stays."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name) and not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
        folder.rmdir()


def _deleted(run_dir: Path) -> list[tuple[float, str, Path]]:
    """(when, which, where), oldest first."""
    try:
        if (run_dir / FOLDER).is_symlink():  # nothing outside this folder is ever removed
            return []
        with os.scandir(run_dir / FOLDER) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    known = [(found, name) for name in names if (found := _DELETED.fullmatch(name))]
    return sorted((float(found[1]), found[2], run_dir / FOLDER / name) for found, name in known)
