"""Difference: what was changed between two runs, told as few things as it is.

One change shows in many places: `--workers 4` on the command line is `num_workers` of the loader, and with it
come `prefetch_factor` and `persistent_workers`. What follows from a change is told with it, not beside it, so
that "exactly one thing differs" can be said when it is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from monitor.compare.settings import LATE, Flat, code, settings
from monitor.compare.side import Side

Change = dict[str, Any]

#: Part of a name → what it follows from, where that differs too; `{g}` is the fact it belongs to. The first
#: that differs takes it.
FOLLOWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"loader/\d+\.(prefetch_factor|persistent_workers|multiprocessing_context|timeout|worker_init_fn)",
     ("{g}.num_workers",)),
    (r"loader/\d+\.shuffle", ("{g}.sampler",)),
    (r"loader/\d+\.length", ("{g}.batch_size", "{g}.dataset", "world_size")),
    (r"loader/\d+\.(sampler|batch_size)", ("world_size",)),
    (r"model/\d+\.(parameters|trainable|dtypes|conv_channels_last)", ("{g}.class", "{g}.parameters")),
    (r"model/\d+\.class", ("{g}.compiled", "{g}.distributed_data_parallel", "{g}.data_parallel")),
    (r"model/\d+\.distributed_data_parallel", ("world_size",)),
    (r"optimizer/\d+\.parameters", ("model/1.class", "model/1.parameters")),
    (r"optimizer/\d+\..*", ("{g}.class",)),
    (r"precision\.(autocast_dtype|autocast_device|scaler|backward_in_autocast)", ("precision.autocast",)),
    (r"precision\.(scale_init|clips_while_scaled)", ("precision.scaler", "precision.autocast")),
    (r"(threads\.threads|env\.threads|env\.interop_threads|env\.omp_num_threads)",
     ("variables.OMP_NUM_THREADS", "env.omp_num_threads", "threads.threads")),
    (r"env\.threads", ("threads.threads",)),
    (r"(env|threads)\.(usable_cpus|cpu_.*|threads|interop_threads)", ("host", "env.usable_cpus")),
    (r"env\.cuda", ("env.torch",)),
    (r"(ddp|env)\..*", ("world_size",)),
    (r"gpu.*|cuda.*", ("host",)),
)  # fmt: skip

_ENVIRONMENT = re.compile(r"(host$|env\.|variables\.|gpu|cuda|threads\.usable_cpus)")
#: Parts that say nothing without what they are a part of.
_NEEDS_A_NOUN = frozenset(
    "class parameters trainable dtypes param_dtypes device compiled length dataset sampler timeout".split()
)
#: A fact that is there on one side only is one difference, called after the fact.
_GROUP = re.compile(r"([a-z_]+(?:/\d+)?)\.(?<!variables\.)")


def differences(before: Side, after: Side) -> list[Change]:
    """What differs, each a thing by itself.

    Returns:
        One entry a thing: `name` (dotted, as the store has it), `label` (for people), `before`, `after`,
        `kind` ("setting" or "environment"), `via` (the option or configuration value that says the same, or
        None) and `with` (what follows from it: name, label, before, after).
    """
    first, second = settings(before), settings(after)
    raw = {change["name"]: change for change in _raw(first, second)}
    things = _folded(raw)
    things = _merged(things)
    if code(before, after)["edited"] is False:
        things = _under_one_input(things)
    return sorted(things, key=lambda change: (change["kind"] == "environment", change["name"]))


def _raw(before: Flat, after: Flat) -> Iterable[Change]:
    groups = [{_group(name) for name in side} for side in (before, after)]
    lone = {group for group in groups[0] ^ groups[1] if group}
    for group in sorted(lone):
        if not group.startswith((*LATE, "env")):
            there = group in groups[0]
            yield _change(group, _presence(there), _presence(not there))
    for name in sorted({*before, *after}):
        if _group(name) not in lone and not _same(before.get(name), after.get(name)):
            yield _change(name, before.get(name), after.get(name))


def _group(name: str) -> str | None:
    found = _GROUP.match(name)
    return found[1] if found and found[1] not in ("option", "config") else None


def _presence(there: bool) -> str:
    return "there" if there else "not there"


def _change(name: str, before: Any, after: Any) -> Change:
    kind = "environment" if _ENVIRONMENT.match(name) else "setting"
    return {
        "name": name, "label": label(name), "before": before, "after": after,
        "kind": kind, "via": None, "with": [],
    }  # fmt: skip


def label(name: str) -> str:
    """A dotted name for people: "num_workers", "loader/2 num_workers", "--lr"."""
    group, _, part = name.rpartition(".") if "/" in name else name.partition(".")
    if group == "option":
        return part if part.startswith("argument") or part == "script" else f"--{part}"
    if group.endswith("/1") and part in _NEEDS_A_NOUN:
        return f"{group.removesuffix('/1')} {part}"
    if group.endswith("/1") or group in ("config", "env", "precision", "ddp", "threads", "variables"):
        return part.removesuffix(".on")
    return f"{group} {part}".strip() if part else name


def _same(a: Any, b: Any) -> bool:
    return bool(a == b or _normalized(a) == _normalized(b))


def _normalized(value: Any) -> Any:
    """A value as any of the places that can hold it would spell it: 4, "4" and 4.0 are one."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value).lower()


def _folded(raw: dict[str, Change]) -> list[Change]:
    """Everything that follows from something else that differs, moved into that."""
    heads = {name: _head(name, raw) for name in raw}
    for name, head in heads.items():
        if head != name and not _repeats(raw[name], raw[head]):
            raw[head]["with"].append(_brief(raw[name]))
    return [change for name, change in raw.items() if heads[name] == name]


def _repeats(change: Change, head: Change) -> bool:
    """Whether two places told the same (torch's threads stand in two facts)."""
    return change["label"] == head["label"] and _same_change(change, head)


def _head(name: str, raw: dict[str, Change]) -> str:
    """What `name` follows from in the end; itself where from nothing."""
    seen = {name}
    while True:
        parent = _parent(name, raw)
        if parent is None or parent in seen:
            return name
        name = parent
        seen.add(name)


def _parent(name: str, raw: dict[str, Change]) -> str | None:
    group = _group(name) or ""
    for pattern, parents in FOLLOWS:
        if not re.fullmatch(pattern, name):
            continue
        for parent in (text.format(g=group) for text in parents):
            if parent != name and parent in raw and _does_follow(name, raw[parent]):
                return parent
    return None


def _does_follow(name: str, parent: Change) -> bool:
    """Between two numbers of workers above zero, what belongs to workers is a choice of its own."""
    if parent["name"].endswith(".num_workers"):
        return 0 in (parent["before"], parent["after"])
    return True


def _merged(things: list[Change]) -> list[Change]:
    """Options and configuration values that say the same as something seen, told with that."""
    inputs = [thing for thing in things if _is_input(thing)]
    seen = [thing for thing in things if not _is_input(thing)]
    left = []
    for option in inputs:
        twin = next((thing for thing in seen if _same_change(option, thing)), None)
        if twin is None:
            left.append(option)
        else:
            twin["via"] = twin["via"] or option["label"]
    return [*left, *seen]


def _under_one_input(things: list[Change]) -> list[Change]:
    """The script being the same, one option that differs explains every other setting that does."""
    inputs = [thing for thing in things if _is_input(thing)]
    others = [thing for thing in things if not _is_input(thing)]
    if len(inputs) != 1 or any(thing["kind"] == "environment" or thing["via"] for thing in others):
        return things
    for thing in others:
        inputs[0]["with"] += [_brief(thing), *thing["with"]]
    return inputs


def _brief(change: Change) -> Change:
    return {key: change[key] for key in ("name", "label", "before", "after")}


def _is_input(thing: Change) -> bool:
    return str(thing["name"]).startswith(("option.", "config."))


def _same_change(option: Change, seen: Change) -> bool:
    return _same(option["before"], seen["before"]) and _same(option["after"], seen["after"])
