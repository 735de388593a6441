"""How float32 matrices are multiplied, by whichever of torch's two settings the program uses."""

from __future__ import annotations

import torch

#: What the newer setting (torch 2.9) means in words of the older one; whatever else it says is full float32.
_IN_WORDS = {"tf32": "high", "bf16": "medium"}


def matmul_precision() -> str | None:
    """`highest`, `high` (TF32 on CUDA) or `medium`; None where torch does not tell.

    Torch refuses to answer the older question in a program that uses the newer setting.
    """
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:
        newer = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
        return _IN_WORDS.get(newer, "highest") if isinstance(newer, str) else None
