"""Where tokens, ports, locks and tapes are kept, and who may read them: nobody but the user.

A *claim* is a lock file that the running process holds open. The kernel lets go of it when that
process ends, however it ends, so a stale claim cannot exist.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import threading
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from monitor.filesystems import on_network

try:
    import fcntl
except ImportError:  # Windows: no claims, so no agent; `attach` says so
    fcntl = None  # type: ignore[assignment]


def run_dir(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder that keeps runs: `given`, MONITOR_RUN_DIR, or the user's data folder. Not created."""
    chosen = given or os.environ.get("MONITOR_RUN_DIR")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "torchvitals" / "runs"


def state_dir() -> Path:
    """The private folder (mode 0700), created when missing.

    Raises:
        OSError: it cannot be created, or somebody else owns it.
    """
    chosen = os.environ.get("MONITOR_STATE_DIR")
    base = (
        Path(chosen) if chosen else Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "torchvitals"
    )
    return private(base.expanduser().absolute())


def private(folder: Path) -> Path:
    """Make a folder that only this user may enter. Raises OSError where that fails."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)
    return folder


def spool_dir(run: str) -> Path:
    """Where one run's tapes and unsent batches lie on this host: always a local disk."""
    state = state_dir()
    if not on_network(state):
        return private(state / "spool" / run)
    local = private(Path(tempfile.gettempdir()) / f"torchvitals-{os.getuid()}")
    return private(local / run)


def settings() -> dict[str, Any]:
    """What `settings.json` in the private folder says; {} where there is none.

    Raises:
        ValueError: it is no JSON object. The message says which file, in one line.
    """
    path = state_dir() / "settings.json"
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f'{path} holds one JSON object, such as {{"alerts": ["ntfy://topic"]}}')
    return found


def alert_addresses() -> tuple[str, ...]:
    """Where alerts of every run go, as settings.json says. What makes no sense there is left out."""
    try:
        addresses = settings().get("alerts")
    except (ValueError, OSError):
        return ()
    return tuple(str(url) for url in addresses if url) if isinstance(addresses, list) else ()


@dataclass
class HubState:
    """How to reach the hub of one run folder. Kept between hubs, so that links stay valid.

    Attributes:
        port: it listens there.
        viewer_token: opens pages and reads.
        ingest_token: lets an agent send.
        run_dir: the folder of runs that it serves.
        host: the address it is bound to.
    """

    port: int
    viewer_token: str
    ingest_token: str
    run_dir: str
    host: str = "127.0.0.1"

    @property
    def base(self) -> str:
        """Address without a token."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host  # noqa: S104  read, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"

    @property
    def url(self) -> str:
        """Address with the viewer's token, for a person to open."""
        return f"{self.base}?token={self.viewer_token}"


def hub_files(runs: Path) -> tuple[Path, Path]:
    """State file and claim of the hub that serves `runs`."""
    stem = hashlib.sha256(str(runs).encode()).hexdigest()[:16]
    folder = private(state_dir() / "hubs")
    return folder / f"{stem}.json", folder / f"{stem}.lock"


def load_hub(runs: Path) -> HubState | None:
    """What is known of the hub of `runs`; None where nothing is, or the file makes no sense."""
    try:
        found = json.loads(hub_files(runs)[0].read_text())
        return HubState(**{field.name: found[field.name] for field in fields(HubState)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save_hub(state: HubState) -> None:
    """Write the state file (0600), whole or not at all."""
    write_private(hub_files(Path(state.run_dir))[0], asdict(state))


def write_private(path: Path, content: Any) -> None:
    """Replace a JSON file by one that only this user may read. Whoever reads it sees the old or the new one.

    Raises:
        OSError: it cannot be written; then the old one stays, and no piece of the new one.
    """
    text = json.dumps(content)
    part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def claim(path: Path, *, wait: bool = False) -> int | None:
    """Take a claim. Returns its file descriptor, to be kept open; None while another holds it.

    Raises:
        OSError: claims are not to be had here (no fcntl, a folder that cannot be written).
    """
    if fcntl is None:
        raise OSError("this system has no file locks of the kind needed")
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def held(path: Path) -> bool:
    """Whether a living process holds the claim."""
    if not path.exists():
        return False
    handle = claim(path)
    if handle is None:
        return True
    os.close(handle)
    return False
