"""One batch is fetched once and trained on again and again."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = next(iter(DataLoader(TensorDataset(torch.randn(256, 8), torch.randn(256, 1)), batch_size=64)))
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(400):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
print(json.dumps({"steps": 400}))
