"""A DataLoader and one optimizer."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(1000, 32), torch.randint(0, 4, (1000,)))
model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 4))
optimizer = torch.optim.Adam(model.parameters())
steps = samples = 0
for epoch in range(12):
    for x, y in DataLoader(data, batch_size=48, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
print(json.dumps({"steps": steps, "samples": samples, "epochs": 12}))
