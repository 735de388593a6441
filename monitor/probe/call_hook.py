"""Where a hook on one module's call goes: where `nn.Module.__call__` looks for a compiled call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from monitor.probe import torch_compat
from monitor.probe.patches import Patches

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


def allow_call_hooks(patches: Patches) -> None:
    """Have torch bear our call where it copies a module for DataParallel, or reads it for TorchScript.

    Raises:
        NotInTorchError: no module can be hooked in this torch.
    """
    for needed in (torch_compat.COMPILED_CALL, torch_compat.MODULE_CALL):
        torch_compat.owner(needed)
    patches.replace(*torch_compat.owner(torch_compat.REPLICATE), _replicate)
    if torch_compat.has(torch_compat.SCRIPT_IGNORED):
        # TorchScript would look for the type of what stands in that place.
        ignored: list[str] = torch_compat.value(torch_compat.SCRIPT_IGNORED)
        ignored.append(COMPILED_CALL_ATTR)
        patches.on_undo(lambda: ignored.remove(COMPILED_CALL_ATTR))


def _replicate(original: Callable[..., Any]) -> Callable[..., Any]:
    def _replicate_for_data_parallel(module: Any, *args: Any, **kwargs: Any) -> Any:
        replica = original(module, *args, **kwargs)
        # A replica takes over its original's attributes, and with ours it would run the original.
        ours = vars(replica).get(COMPILED_CALL_ATTR)
        if hasattr(ours, OURS):
            vars(replica).update({COMPILED_CALL_ATTR: getattr(ours, OURS)})
        return replica

    return _replicate_for_data_parallel


def compiler_in_use() -> bool:
    """Whether torch.compile was ever called here: then a hook on a part of a model may break a graph."""
    if not torch_compat.loaded(torch_compat.COMPILED_BACKENDS):
        return False
    if not torch_compat.has(torch_compat.COMPILED_BACKENDS):
        return True
    backends = torch_compat.value(torch_compat.COMPILED_BACKENDS) or {}
    return any(backend is not None for backend in backends.values())  # None: kept from compiling
