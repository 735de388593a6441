"""What torch's flight recorder left of a rank that hangs. A dump is a pickle, and nothing in it is run."""

from __future__ import annotations

import contextlib
import io
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from monitor.agent import proc
from monitor.agent.follow import Followed
from monitor.strict_json import plain

#: A larger file is none of ours (2,000 entries with stacks are about 4 MB).
MOST_BYTES = 32 * 1024 * 1024
#: Entries that are handed on, the unfinished and the newest.
ENTRIES = 200
#: What an analysis needs of an entry.
KEYS = (
    "process_group", "collective_seq_id", "profiling_name", "input_sizes", "state", "retired", "is_p2p",
)  # fmt: skip
#: Variables that say where dumps go (the older name is NCCL's alone), and where they go by themselves. The
#: rank's number is appended.
VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
DEFAULT_PATHS = ("/tmp/nccl_trace_rank_", "~/.cache/torch/comm_lib_trace_rank_")  # noqa: S108 torch's own place


class FlightError(ValueError):
    """A file that is no dump. The message says why in one line."""


class _Plain(pickle.Unpickler):
    """Knows lists, dicts, numbers and strings, and nothing that could be called."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse.

        Raises:
            FlightError: always: a dump holds no objects.
        """
        raise FlightError(f"it wants to load {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        """Refuse.

        Raises:
            FlightError: always.
        """
        raise FlightError("it wants to load something from elsewhere")


def recorded(tape: Followed, stalls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The `flight` event, without time, of a rank that was just seen to wait in a collective; else none."""
    if not any(stall.get("cause_code") == "collective" for stall in stalls):
        return []
    dump = newest(tape.pid, tape.rank, tape.wall_ns / 1e9)
    return [] if dump is None else [{"kind": "flight", "rank": tape.rank, "dump": dump}]


def newest(pid: int, rank: int, since_unix_s: float) -> dict[str, Any] | None:
    """The rank's dump, written since then; None where there is none to be read."""
    for path in _candidates(pid, rank):
        with contextlib.suppress(OSError, FlightError):
            if path.stat().st_mtime >= since_unix_s:
                return read(path)
    return None


def read(path: Path) -> dict[str, Any]:
    """A dump as plain data: `pg_config`, and of `entries` those that an analysis needs.

    Raises:
        FlightError: no dump, too large, or one that would run something.
        OSError: not to be read.
    """
    with path.open("rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise FlightError(f"more than {MOST_BYTES} bytes")
    try:
        dump = _Plain(io.BytesIO(raw)).load()
    except FlightError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged bytes may mean anything
        raise FlightError(f"no pickle: {type(error).__name__}") from None
    if not isinstance(dump, Mapping) or not isinstance(dump.get("entries"), list):
        raise FlightError("no list of entries in it")
    entries = [
        {key: entry.get(key) for key in KEYS} for entry in dump["entries"] if isinstance(entry, Mapping)
    ]
    pending = [entry for entry in entries if entry["state"] != "completed" and not entry["retired"]]
    kept = pending[:ENTRIES] + [entry for entry in entries if entry not in pending][-ENTRIES:]
    found: dict[str, Any] = plain({"pg_config": dump.get("pg_config"), "entries": kept}, marks=True)
    return found


def _candidates(pid: int, rank: int) -> Iterator[Path]:
    env = proc.environment(pid) or {}
    for start in (*(env[name] for name in VARIABLES if env.get(name)), *DEFAULT_PATHS):
        yield Path(f"{start}{rank}").expanduser()
