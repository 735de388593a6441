"""LBFGS: each step calls a closure several times."""

import json

import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-3, 3, 200)[:, None]
y = torch.sin(x)
model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=6, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for step in range(60):
    optimizer.step(closure)
print(json.dumps({"steps": 60}))
