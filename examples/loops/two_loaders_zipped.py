"""Labelled and unlabelled batches, one of each a step."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labelled = DataLoader(TensorDataset(torch.randn(300, 10), torch.randint(0, 2, (300,))), batch_size=10)
unlabelled = DataLoader(TensorDataset(torch.randn(900, 10)), batch_size=30)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters())
steps = 0
for epoch in range(8):
    for (x, y), (u,) in zip(labelled, unlabelled):
        supervised = nn.functional.cross_entropy(model(x), y)
        entropy = -(model(u).softmax(1) * model(u).log_softmax(1)).sum(1).mean()
        optimizer.zero_grad()
        (supervised + 0.1 * entropy).backward()
        optimizer.step()
        steps += 1
print(json.dumps({"steps": steps}))
