"""Ranks that a launcher starts anew after they failed: the run goes on, with a pause in it."""

from __future__ import annotations

from collections.abc import Mapping

from monitor.agent import exits, proc
from monitor.agent.follow import Followed


def returns(tape: Followed) -> bool:
    """Whether a process of this rank that has ended may be followed by another one.

    torchrun restarts all ranks when one fails, as often as it was allowed to, and ends itself otherwise.
    """
    env = tape.facts.get("env")
    if not isinstance(env, Mapping) or not _failed(tape):
        return False
    done, allowed, launcher = (env.get(key) for key in ("restarts", "restarts_allowed", "launcher_pid"))
    if not (isinstance(done, int) and isinstance(allowed, int) and isinstance(launcher, int)):
        return False
    found = proc.stat(launcher) if done < allowed else None
    # A process that is younger than the rank has got the launcher's number, and is none.
    return found is not None and found.state not in "ZX" and found.start_ticks <= (tape.start_ticks or 0)


def _failed(tape: Followed) -> bool:
    return tape.failure is not None or (tape.end or {}).get("reason") not in exits.CLEAN_REASONS
