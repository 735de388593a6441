"""What is known of one DataLoader."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

#: A step, and what its batches came to: samples, tokens, elements, micro-batches.
Before = tuple[int, Sequence[float]]


class LoaderState:
    """What is known of one DataLoader; hangs on it and on its iterators while they live.

    Attributes:
        number: 1, 2, … in the order in which loaders were first used.
        evaluates: its batches belong to an evaluation.
        trains: in this iteration over it, a batch of it was trained on.
        quiet: every model was in evaluation mode at its newest fetch.
        role: "train" once it was trained on, "eval" where only evaluation was seen; None before either.
        epochs: iterations over it, begun so far.
        iter_ms: what the newest `iter(loader)` took.
        first_wait_ms: what the first fetch of the newest iteration took; None before it.
        settled: the newest fetch was one of many for training; the next needs no second look.
        unused: a batch was fetched with gradients on, and since then nothing but evaluation was seen.
        countable: its batches can be counted.
        place: where in the user's code it was made, or else first iterated.
        origin: a name for the instruction that made it, or its number.
        call: the source of the call that made it.
        before_batch: as it was before the newest batch.
        before_pass: as it was before the first batch of the newest iteration over it.
        before_untrained: as it was before the first batch since which nothing was trained; None where that
            is the newest.
        trainings: how often something had been trained when the newest batch arrived.
        left: the batches since which nothing was trained, as long as they live.
        skips: they are being skipped.
        forward_ns: the step's forward passes when the first of them arrived.
        exhausted: the newest iteration over it has ended.
    """

    __slots__ = (
        "before_batch", "before_pass", "before_untrained", "call", "countable", "epochs", "evaluates",
        "exhausted", "first_wait_ms", "forward_ns", "iter_ms", "left", "number", "origin", "place", "quiet",
        "role", "settled", "skips", "trainings", "trains", "unused",
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number = number
        self.evaluates = self.trains = self.quiet = self.unused = self.settled = False
        self.role: str | None = None
        self.countable = True
        self.epochs = 0
        self.iter_ms = 0.0
        self.first_wait_ms: float | None = None
        self.place: str | None = None
        self.origin = ""
        self.call: str | None = None
        self.before_batch: Before | None = None
        self.before_pass: Before | None = None
        self.before_untrained: Before | None = None
        self.trainings = self.forward_ns = 0
        self.left: list[weakref.ref[Any]] = []
        self.skips = self.exhausted = False
