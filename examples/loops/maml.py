"""Meta-learning: inner steps by autograd.grad on copies, one outer step a batch of tasks."""

import json

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(1, 1)
outer = torch.optim.Adam(model.parameters(), lr=1e-2)
for iteration in range(150):
    outer.zero_grad()
    for task in range(4):
        slope = torch.randn(1)
        x = torch.randn(10, 1)
        weights = dict(model.named_parameters())
        for _ in range(3):
            loss = (torch.func.functional_call(model, weights, (x,)) - slope * x).square().mean()
            grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            weights = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), grads)}
        q = torch.randn(10, 1)
        ((torch.func.functional_call(model, weights, (q,)) - slope * q).square().mean() / 4).backward()
    outer.step()
print(json.dumps({"steps": 150}))
