"""Thousands of tiny tensors are made on the device in every step (`small_allocations`)."""

import torch
from loop import Loop, made_there, perceptron, regress

loop = Loop(__doc__)
count = loop.size(4000, 20)


def scatter(loss: torch.Tensor) -> None:
    """As code does that keeps its numbers one by one."""
    kept = [torch.zeros(4, device=loop.device) for _ in range(count)]
    kept.clear()


regress(loop, perceptron(loop, 1024, 4), made_there(loop, 512, 1024), half=True, after=scatter)
loop.done()
