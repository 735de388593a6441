"""What a framework, or the user, says of the loop that runs. What nobody says is found out."""

from __future__ import annotations

from collections.abc import Callable


class LoopState:
    """Read by the hooks at every step, written by adapters through `monitor.probe.framework_hooks`.

    Attributes:
        phase: EVAL or OTHER: whether the loop evaluates or trains; None: to be found out.
        completes_step: asked after each backward pass and optimizer step whether it completes a step;
            None: it does.
        counts: a batch is counted when it is fetched; False: an adapter counts it.
        sums_loss: the losses of one step's backward passes are shares of one loss.
        drifts: the newest backward pass exchanged no gradients, though earlier ones did.
        saving: somebody's own way to save is being timed, and `torch.save` inside it is a part of that.
    """

    __slots__ = ("completes_step", "counts", "drifts", "phase", "saving", "sums_loss")

    def __init__(self) -> None:
        self.phase: int | None = None
        self.completes_step: Callable[[], bool] | None = None
        self.counts = True
        self.sums_loss = False
        self.drifts = False
        self.saving = False
