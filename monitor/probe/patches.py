"""What was replaced in other people's modules, and how it is put back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, TypeVar

_MISSING = object()

Function = TypeVar("Function", bound=Callable[..., Any])


class Patches:
    """Replacements that can be taken back, last first.

    One that somebody else has replaced since is left alone: putting the original back would undo
    their work. Ours then stays inside theirs and merely passes through.
    """

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any], also: Iterable[Any] = ()) -> None:
        """Put `make(original)` in the place of `owner.name`. An attribute that is missing is skipped.

        What takes the place shows the original's name, text and signature: other libraries ask for them.

        Args:
            also: further owners that may hold the same function under the same name, and then get the
                same replacement: pickle looks a function up by its module and compares.
        """
        original: Any = getattr(owner, name, _MISSING)
        if original is _MISSING:
            return
        ours = make(original)
        if isinstance(ours, FunctionType):
            functools.update_wrapper(ours, original)
            unseen_by_compiler(ours)
        for place in (owner, *also):
            if getattr(place, name, _MISSING) is original:
                self._put(place, name, ours)

    def _put(self, owner: Any, name: str, ours: Any) -> None:
        own = vars(owner).get(name, _MISSING)
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


def unseen_by_compiler(function: Function) -> Function:
    """Have torch.compile run this function as it is, and look into what it calls as if it were not there.

    Without this the compiler takes a hook that stands between two of torch's own frames for the user's
    code: it compiles it, and the hook then measures nothing. Does not import torch's compiler.
    """
    try:
        from torch._C._dynamo import eval_frame
    except ImportError:
        return function
    code = function.__code__
    if hasattr(eval_frame, "skip_code"):  # until torch 2.6
        eval_frame.skip_code(code)
    elif hasattr(eval_frame, "set_code_exec_strategy"):
        action = eval_frame._FrameAction
        skip = eval_frame._FrameExecStrategy(action.SKIP, action.DEFAULT)
        eval_frame.set_code_exec_strategy(code, skip)
    return function
