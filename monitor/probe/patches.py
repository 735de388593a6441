"""What was replaced in other people's modules, and how it is put back."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any, TypeVar

from monitor.probe import torch_compat

_MISSING = object()
#: Why our hooks could not be hidden from torch's compiler, which then counts graph breaks of ours as the
#: program's; empty where they are hidden.
compiler_sees_hooks: list[Exception] = []

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

    def part(self) -> Patches:
        """Replacements of their own, which can be taken back before all the others, and are with them."""
        part = Patches()
        self.on_undo(part.restore)
        return part

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
    """Raises nothing: without it less is known of what is compiled, see `compiler_sees_hooks`."""
    try:
        _skipping()(code, within)
    except Exception as error:  # noqa: BLE001 - only of interest where something is compiled
        compiler_sees_hooks[:] = [error]


@functools.cache
def _skipping() -> Callable[[CodeType, bool], None]:
    try:
        skip = torch_compat.value(torch_compat.SKIP_CODE)
        return lambda code, within: skip(code)
    except torch_compat.NotInTorchError as error:
        older = error
    try:
        return _skipping_by_strategy()
    except torch_compat.NotInTorchError as newer:
        # which of the two ways this torch should have had is not known: both are named
        raise torch_compat.NotInTorchError(f"{older}; {newer}") from None


def _skipping_by_strategy() -> Callable[[CodeType, bool], None]:
    action = torch_compat.value(torch_compat.FRAME_ACTION)
    strategy = torch_compat.value(torch_compat.FRAME_EXEC_STRATEGY)
    set_strategy = torch_compat.value(torch_compat.EXEC_STRATEGY)
    alone, all_within = strategy(action.SKIP, action.DEFAULT), strategy(action.SKIP, action.SKIP)
    return lambda code, within: set_strategy(code, all_within if within else alone)
