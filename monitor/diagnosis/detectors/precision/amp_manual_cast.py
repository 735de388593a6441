"""Parameters were cast to 16 bits by hand: no float32 copy takes up the small updates.

What: half of the trained parameters or more are float16 (a warning) or bfloat16 (information), with no
    float32 copy in an optimizer.
Why it costs: updates smaller than a weight's last bit are lost; in float16 Adam's eps is zero and weights
    soon are not finite.
How to see it: `parameter_dtype`.
How to fix it: keep parameters in float32 and let autocast choose.
How sure we are: certain about the types. Optimizers with hidden float32 copies may be missed.

Facts: model: `trainable_dtypes`, or `dtypes` with `trainable` and `parameters`; optimizer: `param_dtypes`
"""

from __future__ import annotations

from collections.abc import Mapping

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import facts_of, half_autocast, numbers, ranks_where

CODE = "amp_manual_cast"
NEEDS = frozenset({"model"})

#: Without a float32 copy no scaler helps, and the loss soon is not finite for this very reason.
EXPLAINS = frozenset({"amp_no_scaler"})

#: Share of the trained parameters that is no detail (own: norms or a head may be cast on purpose).
MOST = 0.5

HALF = ("float16", "bfloat16")


def detect(window: Window) -> Finding | None:
    """float16 is a fault. bfloat16 is common for fine-tuning, so it is information only."""
    ranks = ranks_where(window, lambda rank: _cast_to(rank) is not None)
    if not ranks:
        return None
    kind = _cast_to(ranks[0])
    severity: Severity = "warning" if kind == "float16" else "info"
    model = next(one for one in facts_of(ranks[0], "model") if _kind(one) == kind)
    return Finding(
        CODE, severity, message("Parameters are {kind}", kind=kind),
        message("trained parameters in {kind}", kind=kind),
        {"model": model.get("class"), "parameter_dtype": kind, "autocast": half_autocast(ranks[0]) or "off"},
        "Keep the parameters in float32 and let autocast choose the types: updates smaller than the last "
        "bit of a 16-bit weight are lost, and Adam's eps vanishes in float16.",
        snippet="model = model.float()\nwith torch.autocast(device):\n    loss = loss_fn(model(x), y)",
        ranks=numbers(ranks), location=model.get("location"),
    )  # fmt: skip


def _cast_to(rank: Rank) -> str | None:
    """The 16-bit type of what is trained, float16 before bfloat16; None where float32 is kept somewhere."""
    if _keeps_master_weights(rank):
        return None
    kinds = {_kind(model) for model in facts_of(rank, "model")}
    return next((kind for kind in HALF if kind in kinds), None)


def _kind(model: Mapping[str, object]) -> str | None:
    sizes = model.get("trainable_dtypes") or (_all_trained(model) and model.get("dtypes"))
    if not isinstance(sizes, Mapping):
        return None
    total = sum(sizes.values())
    return next((kind for kind in HALF if total and sizes.get(kind, 0) >= MOST * total), None)


def _all_trained(model: Mapping[str, object]) -> bool:
    """Whether every parameter is trained, so that the types of all are those of the trained ones."""
    return model.get("trainable", model.get("parameters")) == model.get("parameters")


def _keeps_master_weights(rank: Rank) -> bool:
    """Whether some optimizer steps on float32 parameters of its own."""
    kinds = [one["param_dtypes"] for one in facts_of(rank, "optimizer") if one.get("param_dtypes")]
    return any("float32" in sizes for sizes in kinds)
