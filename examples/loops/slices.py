"""Batches are slices of a shuffled tensor."""

import json

import torch
from torch import nn

torch.manual_seed(0)
X, Y, B, n = torch.randn(1500, 12), torch.randint(0, 3, (1500,)), 50, 0
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(10):
    order = torch.randperm(len(X))
    for start in range(0, len(X), B):
        index = order[start : start + B]
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(X[index]), Y[index]).backward()
        optimizer.step()
        n += 1
print(json.dumps({"steps": n}))
