"""A compiled model."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
fast = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.Adam(model.parameters())
steps = 0
for _ in range(4):
    for x, y in DataLoader(TensorDataset(torch.randn(640, 32), torch.randint(0, 4, (640,))), batch_size=32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(fast(x), y).backward()
        optimizer.step()
        steps += 1
print(json.dumps({"steps": steps, "samples": 2560, "epochs": 4}))
