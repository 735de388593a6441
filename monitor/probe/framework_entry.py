"""Finds the framework that trains, though nobody named it: at the first call of its own entry.

A `Trainer` may be made inside another library, or by a script that knows nothing of us. The first time that
one is told to train, it is handed to its adapter, before its loop begins.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from monitor.probe.adapters import Adapter, adapters
from monitor.probe.auto_attach import imports
from monitor.probe.patches import Patches

#: hand(adapter, target) -> whether the adapter took it; its loop begins now.
Hand = Callable[[Adapter, Any], bool]


def entries() -> list[tuple[Adapter, str, str, str]]:
    """Where the frameworks begin to train: (adapter, module, class, method)."""
    return [(adapter, *entry) for adapter in adapters() for entry in getattr(adapter, "ENTRIES", ())]


def watch_entries(patches: Patches, hand: Hand, ends: Callable[[], None]) -> None:
    """Hand each target over at its first entry.

    Args:
        hand: see `Hand`; must not raise.
        ends: called when the entry is left in which a target was handed over.
    """
    seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def watch(adapter: Adapter, module: str, kind: str, method: str) -> None:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def entry(target: Any, /, *args: Any, **kwargs: Any) -> Any:
                if target in seen or _inside_another(adapter):
                    return original(target, *args, **kwargs)
                seen.add(target)
                if not hand(adapter, target):
                    return original(target, *args, **kwargs)
                try:
                    return original(target, *args, **kwargs)
                finally:
                    ends()

            return entry

        def imported() -> None:
            owner = getattr(sys.modules[module], kind, None)
            if owner is not None:
                patches.replace(owner, method, make)

        imports.watch(module, imported)
        patches.on_undo(lambda: imports.forget(imported))

    for found in entries():
        watch(*found)


def _inside_another(adapter: Adapter) -> bool:
    """Whether another framework that has an adapter calls this one: it leads."""
    caller = str(sys._getframe(2).f_globals.get("__name__", "")).partition(".")[0]
    others = {package for one in adapters() if one is not adapter for package in one.PACKAGES}
    return caller in others
