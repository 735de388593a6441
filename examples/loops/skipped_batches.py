"""Bad batches are left out: no step for them."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(1000, 4), torch.randn(1000, 1)), batch_size=10)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = 0
for _ in range(4):
    for number, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        try:
            if number % 9 == 4:
                raise ValueError("a bad batch")
            loss = (model(x) - y).square().mean()
            loss.backward()
        except ValueError:
            continue
        optimizer.step()
        steps += 1
print(json.dumps({"steps": steps, "epochs": 4}))
