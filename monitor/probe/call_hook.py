"""Where a hook on one module's call goes: where `nn.Module.__call__` looks for a compiled call."""

from __future__ import annotations

import functools
import sys
from typing import Any

#: Where `nn.Module.__call__` looks first.
COMPILED_CALL_ATTR = "_compiled_call_impl"
#: Marks our own call there; its value is the compiled call whose place it took, if the module had one.
OURS = "_torchvitals_compiled"


class CompiledCallHook(functools.partial[Any]):
    """Our call in that place. A copy of it is nothing: it would run the module that it was made for.

    Torch leaves the place out where it copies or pickles a module; a model with its own way may not.
    """

    def __reduce__(self) -> Any:
        return type(None), ()


def compiler_in_use() -> bool:
    """Whether torch.compile was ever called here: then a hook on a part of a model may break a graph."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(frames, "cached_backends", None) or {}  # None stands for functions kept from compiling
    return any(backend is not None for backend in backends.values())
