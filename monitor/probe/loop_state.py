"""What is known of the loop that runs: who says where a step ends, and what its batches and losses mean."""

from __future__ import annotations

from enum import Enum


class StepAuthority(Enum):
    """Who says where a step ends."""

    #: The optimizers and the loop around them: see `monitor.probe.adapters.plain`.
    INFERRED = "inferred"
    #: A framework's own callback.
    FRAMEWORK = "framework"
    #: The user, by `session.step()`.
    USER = "user"


class LoopState:
    """Read by the hooks at every step, written by adapters through `monitor.probe.framework_hooks`.

    Attributes:
        authority: who says where a step ends.
        phase: EVAL or OTHER: whether the loop evaluates or trains; None: to be found out.
        counts: a batch is counted when it is fetched; False: an adapter counts it.
        sums_loss: the losses of one step's backward passes are shares of one loss.
        drifts: the newest backward pass exchanged no gradients, though earlier ones did.
        saving: somebody's own way to save is being timed, and `torch.save` inside it is a part of that.
        in_backward: a backward pass is running.
        in_optimizer: identity of the optimizer whose step is running, 0 for none; its closure runs inside.
        several_optimizers: there is more than one optimizer, though not all may have stepped.
        late_optimizers: optimizers that stepped inside the backward pass (from a gradient's hook).
    """

    __slots__ = (
        "authority", "counts", "drifts", "in_backward", "in_optimizer", "late_optimizers", "phase", "saving",
        "several_optimizers", "sums_loss",
    )  # fmt: skip

    def __init__(self) -> None:
        self.authority = StepAuthority.INFERRED
        self.phase: int | None = None
        self.counts = True
        self.sums_loss = False
        self.drifts = False
        self.saving = False
        self.in_backward = False
        self.in_optimizer = 0
        self.several_optimizers = False
        self.late_optimizers: list[int] = []
