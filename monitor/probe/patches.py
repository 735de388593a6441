"""What was replaced in other people's modules, and how it is put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MISSING = object()


class Patches:
    """Replacements that can be taken back, last first.

    One that somebody else has replaced since is left alone: putting the original back would undo
    their work. Ours then stays inside theirs and merely passes through.
    """

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put `make(original)` in the place of `owner.name`. An attribute that is missing is skipped."""
        own = vars(owner).get(name, _MISSING)
        original = getattr(owner, name, _MISSING)
        if original is _MISSING:
            return
        ours = make(original)
        setattr(owner, name, ours)

        def undo() -> None:
            if vars(owner).get(name) is not ours:
                return
            if own is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, own)

        self._undo.append(undo)

    def on_undo(self, undo: Callable[[], None]) -> None:
        """Have `undo` called by `restore`: for hooks with handles of their own."""
        self._undo.append(undo)

    def restore(self) -> None:
        """Take everything back. Safe to call twice."""
        while self._undo:
            self._undo.pop()()
