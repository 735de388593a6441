"""Scripts that `torchvitals run` started: known before they train, and also when they never do."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from monitor.agent import exits, proc

_LAUNCHED = re.compile(r"launched-(\d+)\Z")


class Launched:
    """The launchers' notes in the spool: `launched-R` while a script runs, `exit-R.json` after it.

    Args:
        spool: where they write.
    """

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._told: set[int] = set()

    def ranks(self) -> list[int]:
        """Ranks that a launcher has started."""
        names = (_LAUNCHED.match(path.name) for path in self._spool.glob("launched-*"))
        return sorted(int(name[1]) for name in names if name)

    def waiting(self) -> bool:
        """Whether one of them still runs: its end is not written, and its process is there."""
        return any(self._said(rank) is None and self._lives(rank) for rank in self.ranks())

    def ended(self, trained: Collection[int]) -> list[dict[str, Any]]:
        """`rank_end` events, once each and without a time, of those that ended and never trained.

        Args:
            trained: ranks that have a tape; their end is the watchdog's to tell.
        """
        events = []
        for rank in self.ranks():
            known = self._said(rank)
            if rank in trained or rank in self._told or (known is None and self._lives(rank)):
                continue
            self._told.add(rank)
            how = exits.explain(known, None, None)
            events.append(
                {
                    "kind": "rank_end",
                    "rank": rank,
                    "code": how.code,
                    "signal": how.signal,
                    "reason": how.reason,
                    "clean": how.clean,
                    "last_step": None,
                    "last_phase": None,
                    "oom_kill": False,
                    "orphans": [],
                    "location": None,
                }
            )
        return events

    def _said(self, rank: int) -> tuple[int | None, int | None] | None:
        return exits.launcher_says(self._spool, rank, 0)

    def _lives(self, rank: int) -> bool:
        try:
            pid = json.loads((self._spool / f"launched-{rank}").read_text())["pid"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        found = proc.stat(pid) if isinstance(pid, int) else None
        return found is not None and found.state not in "ZX"
