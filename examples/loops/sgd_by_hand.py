"""Weights are updated without any optimizer."""

import json

import torch
from torch import nn

torch.manual_seed(0)
w = nn.Parameter(torch.randn(20, 1) * 0.1)
b = nn.Parameter(torch.zeros(1))
X = torch.randn(256, 20)
y = X.sum(1, keepdim=True)
for step in range(350):
    loss = (X @ w + b - y).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.05 * p.grad
            p.grad = None
print(json.dumps({"steps": 350, "or_zero": True}))
