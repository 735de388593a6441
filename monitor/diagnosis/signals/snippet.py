"""Code for the user to copy, made from the call that is in the user's own file."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

#: DataLoader's parameters that may be given by position, in order (torch.utils.data.DataLoader).
_POSITIONS = (
    "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn",
    "pin_memory", "drop_last", "timeout", "worker_init_fn",
)  # fmt: skip

#: A call longer than this is not repeated whole.
_LONGEST = 400


def loader_call(loader: Mapping[str, Any], **changes: Any) -> str:
    """The user's `DataLoader(…)` with some arguments changed or added.

    Args:
        loader: the facts of the loader; "call" is the source of the call where known.
        changes: argument -> new value.
    """
    source = loader.get("call")
    if isinstance(source, str) and len(source) <= _LONGEST:
        changed = _edited(source.strip(), changes)
        if changed is not None:
            return changed
    known = {"batch_size": loader.get("batch_size"), **changes}
    words = [f"{key}={value!r}" for key, value in known.items() if value is not None]
    return f"DataLoader({', '.join(['dataset', *words])})"


def _edited(source: str, changes: Mapping[str, Any]) -> str | None:
    """The call with its arguments replaced; None where the source is not one call."""
    try:
        call = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    if not isinstance(call, ast.Call):
        return None
    left = dict(changes)
    spread = any(isinstance(argument, ast.Starred) for argument in call.args)
    for at, key in enumerate(_POSITIONS[: 0 if spread else len(call.args)]):
        if key in left:
            call.args[at] = ast.Constant(left.pop(key))
    for keyword in call.keywords:
        if keyword.arg in left:
            keyword.value = ast.Constant(left.pop(keyword.arg))
    call.keywords += [ast.keyword(arg=key, value=ast.Constant(value)) for key, value in left.items()]
    return ast.unparse(call)
