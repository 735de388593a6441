"""What a loop counted by hand, told at its end to the file that LOOP_TRUTH names.

It wraps no call: `with truth("forward"):` leaves no frame on the stack while the loop's own call runs.
Seconds are kept from the end of the first step to the end of the last, as the monitor's shares are.
"""

from __future__ import annotations

import hashlib
import json
import os
from time import perf_counter


class Truth:
    """Counts and seconds; `with truth("data"):` around a call, `truth.step()` after a step."""

    def __init__(self):
        self.steps = self.samples = 0
        self.seconds = {}
        self.began = self.last = 0.0
        self.at_last = {}

    def __call__(self, phase):
        return _Took(self, phase)

    def add(self, phase, seconds):
        """So many seconds of a phase, measured by the loop itself."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def step(self, samples=0):
        """A step has ended."""
        self.steps += 1
        self.samples += samples
        self.last = perf_counter()
        if self.steps == 1:
            self.began, self.seconds = self.last, {}
        self.at_last = dict(self.seconds)

    def tell(self, weights=None, findings=(), **counts):
        """Write what was counted. `weights`: a module, several, or tensors; told is their hash."""
        path = os.environ.get("LOOP_TRUTH")
        if not path:
            return
        told = {"steps": self.steps, "findings": list(findings)}
        if self.samples:
            told["samples"] = self.samples
        if self.at_last and self.last > self.began:
            wall = self.last - self.began
            told["shares"] = {name: round(took / wall, 4) for name, took in self.at_last.items()}
        told.update(counts)
        if weights is not None:
            told["weights"] = _digest(weights)
        with open(path, "a") as file:
            file.write(json.dumps(told) + "\n")


class _Took:
    def __init__(self, truth, phase):
        self.truth, self.phase = truth, phase

    def __enter__(self):
        self.began = perf_counter()

    def __exit__(self, *_):
        self.truth.add(self.phase, perf_counter() - self.began)


def _digest(weights):
    sha = hashlib.sha256()
    for part in weights if isinstance(weights, (list, tuple)) else [weights]:
        tensors = part.state_dict().values() if hasattr(part, "state_dict") else [part]
        for tensor in tensors:
            sha.update(tensor.detach().contiguous().cpu().numpy().tobytes())
    return sha.hexdigest()[:16]
