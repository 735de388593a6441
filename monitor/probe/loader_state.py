"""What is known of one DataLoader."""

from __future__ import annotations


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
        before_batch: the step, and what its batches came to, before the newest one that may be evaluated.
        before_pass: the same before the first batch of the newest iteration over it.
    """

    __slots__ = (
        "before_batch", "before_pass", "call", "countable", "epochs", "evaluates", "first_wait_ms", "iter_ms",
        "number", "origin", "place", "quiet", "role", "settled", "trains", "unused",
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
        self.before_batch: tuple[int, list[float]] | None = None
        self.before_pass: tuple[int, list[float]] | None = None
