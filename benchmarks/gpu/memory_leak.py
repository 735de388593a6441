"""Every step keeps its outputs: the device's memory climbs (`memory_leak`)."""

import torch
from loop import Loop, made_there, perceptron, regress

loop = Loop(__doc__)
kept: list[torch.Tensor] = []


def keep(loss: torch.Tensor) -> None:
    """Two megabytes a step, and the numbers are never used."""
    kept.append(torch.zeros(2**19, device=loop.device) + loss.detach())


torch.set_float32_matmul_precision("high")
regress(loop, perceptron(loop, 4096, 4), made_there(loop, 4096, 4096, batches=4), half=True, after=keep)
loop.done()
