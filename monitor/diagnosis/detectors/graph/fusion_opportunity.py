"""Chains of short kernels that could be one. No detector: it is listed as not checked, with the reason.

What: chains of short element-wise kernels.
Why it costs: each reads and writes memory for little arithmetic.
How to see it: a profile.
How to fix it: `torch.compile`.
How sure we are: not measured here.
"""

from __future__ import annotations

CODE = "fusion_opportunity"
UNCHECKED = "which kernels could be joined only a profile tells, and none is taken"
