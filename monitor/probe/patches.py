"""What was replaced in other people's modules, and how it is put back."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
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
    _pass_over(function.__code__, within=False)
    return function


def hide_from_compiler(*packages: str) -> None:
    """Have torch.compile leave alone whatever functions these packages have, and all that those call.

    For what is called by our hooks. Those that call the user's code in turn are `unseen_by_compiler`.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(packages):
            for value in list(vars(module).values()):
                parts = list(vars(value).values()) if isinstance(value, type) else [value]
                for part in parts:
                    code = getattr(part, "__code__", None)
                    if isinstance(code, CodeType) and getattr(part, "__module__", None) == name:
                        _pass_over_all(code)


def _pass_over_all(code: CodeType) -> None:
    _pass_over(code, within=True)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _pass_over_all(constant)


def _pass_over(code: CodeType, within: bool) -> None:
    try:
        from torch._C._dynamo import eval_frame
    except ImportError:
        return
    if hasattr(eval_frame, "skip_code"):  # until torch 2.6
        eval_frame.skip_code(code)
    elif hasattr(eval_frame, "set_code_exec_strategy"):
        action = eval_frame._FrameAction
        strategy = eval_frame._FrameExecStrategy(action.SKIP, action.SKIP if within else action.DEFAULT)
        eval_frame.set_code_exec_strategy(code, strategy)
