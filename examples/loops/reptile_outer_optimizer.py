"""Reptile: an inner optimizer trains a copy; the difference is given to an outer optimizer as a gradient."""

import copy

import torch
from _truth import Truth
from torch import nn


def inner(model, truth, steps=8):
    fast = copy.deepcopy(model)
    optimizer = torch.optim.SGD(fast.parameters(), lr=0.02)
    shift = torch.rand(1) * 6.28
    for _ in range(steps):
        x = torch.rand(64, 1) * 10 - 5
        with truth("forward"):
            y = fast(x)
        loss = (y - torch.sin(x + shift)).square().mean()
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step()
    return fast, loss.item()


torch.manual_seed(25)
torch.set_num_threads(1)
truth = Truth()
model = nn.Sequential(nn.Linear(1, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
outer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(460):
    fast, last = inner(model, truth)
    outer.zero_grad()
    for p, q in zip(model.parameters(), fast.parameters()):
        p.grad = p.data - q.data
    with truth("optimizer"):
        outer.step()
print("last inner loss", last)
truth.tell(weights=model)
