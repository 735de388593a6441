"""A perturbation is found by gradients of the input, then the model is trained on it."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
steps = 0
for _ in range(4):
    for x, y in DataLoader(TensorDataset(torch.randn(640, 16), torch.randint(0, 2, (640,))), batch_size=32):
        delta = torch.zeros_like(x, requires_grad=True)
        for _ in range(3):
            nn.functional.cross_entropy(model(x + delta), y).backward()
            delta.data = (delta + 0.1 * delta.grad.sign()).clamp(-0.3, 0.3).detach()
            delta.grad = None
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x + delta.detach()), y).backward()
        optimizer.step()
        steps += 1
print(json.dumps({"steps": steps, "samples": 2560, "epochs": 4}))
