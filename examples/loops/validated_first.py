"""A validation before the first step, and none after."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(10, 2)
test = DataLoader(TensorDataset(torch.randn(200, 10), torch.randint(0, 2, (200,))), batch_size=50)
train = DataLoader(TensorDataset(torch.randn(1000, 10), torch.randint(0, 2, (1000,))), batch_size=25)
with torch.no_grad():
    model.eval()
    before = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
model.train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = 0
for _ in range(7):
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        steps += 1
print(json.dumps({"steps": steps, "samples": 7000, "epochs": 7}))
