"""torch.func: gradients and updates as pure functions."""

import json

import torch
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
weights = {name: p.detach() for name, p in model.named_parameters()}
X, y = torch.randn(64, 5), torch.randn(64, 1)


def loss(weights):
    return (functional_call(model, weights, (X,)) - y).square().mean()


for step in range(300):
    gradient = grad(loss)(weights)
    weights = {name: w - 0.05 * gradient[name] for name, w in weights.items()}
print(json.dumps({"steps": 300, "or_zero": True}))
