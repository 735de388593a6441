"""The loop is left in the middle of an epoch, and entered again."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(400, 5), torch.randn(400, 1)), batch_size=8)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = 0
for attempt in range(10):
    for number, (x, y) in enumerate(loader):
        if number == 23:
            break
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
        steps += 1
print(json.dumps({"steps": steps, "epochs": 10}))
