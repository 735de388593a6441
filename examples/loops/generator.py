"""Batches come from a generator that takes its time."""

import json
import time

import torch
from torch import nn

waited = 0.0


def batches(count):
    global waited
    for _ in range(count):
        began = time.perf_counter()
        time.sleep(0.004)
        x = torch.randn(32, 16)
        waited += time.perf_counter() - began
        yield x, x.sum(1, keepdim=True)


torch.manual_seed(0)
model = nn.Linear(16, 1)
optimizer = torch.optim.Adam(model.parameters())
began, steps = time.perf_counter(), 0
for x, y in batches(400):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    steps += 1
share = waited / (time.perf_counter() - began)
print(json.dumps({"steps": steps, "waiting": round(share, 2)}))
