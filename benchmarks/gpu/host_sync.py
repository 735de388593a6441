"""Many values are read one by one in every step, and the host waits for each (`host_sync`)."""

import torch
from loop import Loop, made_there, perceptron, regress

loop = Loop(__doc__)
model = perceptron(loop, 1024, 40)
norms: list[float] = []


def watch(loss: torch.Tensor) -> None:
    """As code does that logs the norm of every weight."""
    norms[:] = [parameter.norm().item() for parameter in model.parameters() for _ in range(4)]


regress(loop, model, made_there(loop, 512, 1024), half=True, after=watch)
loop.done()
