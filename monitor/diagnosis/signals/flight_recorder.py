"""torch's flight recorder, read for the rank that keeps the others waiting. Pure; nothing is unpickled here.

A dump lists a rank's newest collectives by process group and number. Of ranks that wait for each other all
the same, three kinds stand out:

* one that never started a collective which the other members of the group have: it is missing;
* one whose device has not finished a collective that the others have finished: it is stuck;
* one that started another operation under the same number: the program's ranks disagree.

A rank that is missing in one group because it waits in another one is no cause (torch's own analyser reports
every group by itself).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from monitor.diagnosis.core.messages import message

Dump = Mapping[str, Any]

_PEER = re.compile(r"(?:recv|send) (\d+)(?:<-|->)(\d+)")


@dataclass(frozen=True)
class Hang:
    """Why ranks hang.

    Attributes:
        culprits: the ranks that the others wait for, in order.
        kind: "missing", "stuck" or "mismatch".
        group: the process group's description, of the first of them.
        operation: what the others wait in.
        text: the kind in words that do not change while the hang lasts.
    """

    culprits: tuple[int, ...]
    kind: str
    group: str
    operation: str

    @property
    def text(self) -> str:
        """What became of the culprits."""
        return {
            "missing": message(
                "missing in {operation} of {group}", operation=self.operation, group=self.group
            ),
            "stuck": message("stuck in {operation} of {group}", operation=self.operation, group=self.group),
            "mismatch": message(
                "called something else than {operation} in {group}",
                operation=self.operation,
                group=self.group,
            ),
        }[self.kind]


@dataclass
class _Group:
    """One process group.

    Attributes:
        members: its ranks, as far as they left a dump.
        oldest, newest: first unfinished and last started number of each rank that told of any.
        operations: number -> rank -> operation with its sizes.
    """

    name: str
    members: tuple[int, ...]
    oldest: dict[int, int] = field(default_factory=dict)
    newest: dict[int, int] = field(default_factory=dict)
    operations: dict[int, dict[int, str]] = field(default_factory=dict)

    def missing(self) -> set[int]:
        """Members that never came to the newest collective that others wait in."""
        last = max((self.newest[rank] for rank in self.oldest), default=None)
        if last is None:
            return set()
        return {rank for rank in self.members if self.newest.get(rank, -1) < last}

    def stuck(self) -> set[int]:
        """Members that have not finished what others have."""
        if len(self.newest) < 2:
            return set()
        done = {rank: self.oldest.get(rank, newest + 1) for rank, newest in self.newest.items()}
        ahead = max(done.values())
        return {rank for rank, first in self.oldest.items() if first < ahead}

    def odd(self) -> tuple[set[int], int | None]:
        """Ranks that called something else than most under an unfinished number, and the number."""
        for number in sorted(set(self.oldest.values())):
            called = self.operations.get(number, {})
            usual = Counter(called.values()).most_common(1)
            odd = {rank for rank, operation in called.items() if operation != usual[0][0]}
            if odd:
                return odd, number
        return set(), None

    def waits_in(self, number: int | None = None) -> str:
        """The operation of that number, or of the newest one."""
        known = self.operations.get(max(self.newest.values(), default=0) if number is None else number, {})
        names = Counter(name.split(" ")[0] for name in known.values())
        return names.most_common(1)[0][0] if names else "a collective"


def analyse(dumps: Mapping[int, Dump]) -> Hang | None:
    """Who keeps the others waiting; None where all are alike, or the dumps say nothing.

    Args:
        dumps: rank -> its dump as torch writes it ({"entries": [...], "pg_config": {...}}).
    """
    groups = _groups(dumps)
    for group in groups:
        odd, number = group.odd()
        if odd:
            return Hang(tuple(sorted(odd)), "mismatch", group.name, group.waits_in(number))
    missing = {rank for group in groups for rank in group.missing()}
    stuck = {rank for group in groups for rank in group.stuck()}
    if stuck:
        return _hang(stuck, "stuck", [g for g in groups if g.stuck()])
    roots = _roots(groups, missing) or _peers(dumps)
    return _hang(roots, "missing", [g for g in groups if g.missing() & roots] or groups) if roots else None


def _hang(ranks: set[int], kind: str, groups: list[_Group]) -> Hang:
    smallest = min(groups, key=lambda group: (len(group.members), group.name), default=_Group("?", ()))
    return Hang(tuple(sorted(ranks)), kind, smallest.name, smallest.waits_in())


def _roots(groups: Iterable[_Group], missing: set[int]) -> set[int]:
    """Those missing that wait nowhere for another missing one."""
    excused = set()
    for group in groups:
        absent = group.missing()
        if absent:
            excused |= missing & set(group.oldest) - absent
    return missing - excused


def _peers(dumps: Mapping[int, Dump]) -> set[int]:
    """Where only point-to-point operations hang: ranks that are waited for and wait for nobody."""
    awaited: set[int] = set()
    waiting: set[int] = set()
    for rank, dump in dumps.items():
        for entry in _entries(dump):
            peer = _PEER.search(str(entry.get("profiling_name")))
            if entry.get("is_p2p") and _pending(entry) and peer is not None:
                members = _members(dump, entry)
                waiting.add(rank)
                awaited |= {members[int(peer[2])]} if int(peer[2]) < len(members) else set()
    return awaited - waiting


def _groups(dumps: Mapping[int, Dump]) -> list[_Group]:
    groups: dict[str, _Group] = {}
    for rank, dump in sorted(dumps.items()):
        for entry in _entries(dump):
            number, process_group = entry.get("collective_seq_id"), entry.get("process_group")
            if not isinstance(number, int) or not isinstance(process_group, list | tuple) or _aside(entry):
                continue
            name, described = str(process_group[0]), str(process_group[-1])
            members = tuple(member for member in _members(dump, entry) or dumps if member in dumps)
            group = groups.setdefault(name, _Group(_plain(described, name), members))
            group.newest[rank] = max(group.newest.get(rank, -1), number)
            group.operations.setdefault(number, {})[rank] = _operation(entry)
            if _pending(entry):
                group.oldest[rank] = min(group.oldest.get(rank, number), number)
    return list(groups.values())


def _aside(entry: Mapping[str, Any]) -> bool:
    """Whether it is no collective of a named group."""
    return bool(entry.get("is_p2p")) or not entry.get("process_group")


def _members(dump: Dump, entry: Mapping[str, Any]) -> tuple[int, ...]:
    group = entry.get("process_group") or ("",)
    config = dump.get("pg_config") if isinstance(dump.get("pg_config"), Mapping) else {}
    # Gloo calls its only group 0 in one place and nothing in another.
    only = next(iter(config.values())) if config and len(config) == 1 else None
    one = (config or {}).get(str(group[0]), only)
    try:
        ranks = json.loads(one["ranks"]) if isinstance(one["ranks"], str) else one["ranks"]  # type: ignore[index]
        return tuple(int(rank) for rank in ranks)
    except (KeyError, TypeError, ValueError):
        return ()


def _entries(dump: Dump) -> list[Mapping[str, Any]]:
    entries = dump.get("entries")
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def _pending(entry: Mapping[str, Any]) -> bool:
    return entry.get("state") != "completed" and not entry.get("retired")


def _operation(entry: Mapping[str, Any]) -> str:
    """Its name without the backend, and the sizes that all ranks must agree on."""
    name = str(entry.get("profiling_name")).partition(":")[2] or str(entry.get("profiling_name"))
    agreed = name.strip("_").startswith(("all_reduce", "allreduce", "broadcast", "reduce "))
    return f"{name} {entry.get('input_sizes')}" if agreed else name


def _plain(described: str, name: str) -> str:
    return described if described and described != "undefined" else f"group {name}"
