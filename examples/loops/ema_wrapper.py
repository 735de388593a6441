"""A wrapper holds the model and is never called; an average of the weights is kept by hand."""

import copy
import json
import time

import torch
from torch import nn


class Averaged(nn.Module):
    def __init__(self, model, decay=0.99):
        super().__init__()
        self.model, self.shadow, self.decay = model, copy.deepcopy(model).requires_grad_(False), decay

    @torch.no_grad()
    def update(self):
        for old, new in zip(self.shadow.parameters(), self.model.parameters()):
            old.lerp_(new, 1 - self.decay)


torch.manual_seed(0)
torch.set_num_threads(1)
ema = Averaged(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)))
optimizer = torch.optim.SGD(ema.model.parameters(), lr=0.01)
forward, began = 0.0, time.perf_counter()
for step in range(300):
    x = torch.randn(64, 256)
    t = time.perf_counter()
    y = ema.model(x)
    forward += time.perf_counter() - t
    optimizer.zero_grad()
    (y - x).square().mean().backward()
    optimizer.step()
    ema.update()
share = forward / (time.perf_counter() - began)
print(json.dumps({"steps": 300, "shares": {"forward": round(share, 3)}}))
