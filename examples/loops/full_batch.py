"""All data at once, no loader."""

import json

import torch
from torch import nn

torch.manual_seed(0)
X, y = torch.randn(2000, 20), torch.randn(2000, 1)
model = nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, 1))
optimizer = torch.optim.Rprop(model.parameters())
losses = []
while len(losses) < 300:
    optimizer.zero_grad()
    losses.append((model(X) - y).abs().mean())
    losses[-1].backward()
    losses[-1] = losses[-1].item()
    optimizer.step()
print(json.dumps({"steps": len(losses)}))
