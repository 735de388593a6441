"""schedulefree: an optimizer with modes; optimizer.train() and optimizer.eval() around validation."""

import json

import schedulefree
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 384), nn.ReLU(), nn.Linear(384, 8))
optimizer = schedulefree.AdamWScheduleFree(model.parameters(), lr=1e-3)
train = DataLoader(TensorDataset(torch.randn(1600, 64), torch.randint(0, 8, (1600,))), batch_size=32)
test = DataLoader(TensorDataset(torch.randn(800, 64), torch.randint(0, 8, (800,))), batch_size=100)
steps = 0
for epoch in range(20):
    model.train()
    optimizer.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        steps += 1
    model.eval()
    optimizer.eval()
    with torch.no_grad():
        print(epoch, sum(nn.functional.cross_entropy(model(x), y).item() for x, y in test))
print(json.dumps({"steps": steps, "samples": 32000, "epochs": 20, "findings": []}))
