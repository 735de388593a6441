"""An optimizer a parameter, stepped in its gradient's hook."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 3))
each = {p: torch.optim.Adam([p], foreach=False) for p in model.parameters()}


def step_at_once(parameter):
    each[parameter].step()
    each[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(step_at_once)
steps = 0
for _ in range(4):
    for x, y in DataLoader(TensorDataset(torch.randn(800, 12), torch.randint(0, 3, (800,))), batch_size=10):
        nn.functional.cross_entropy(model(x), y).backward()
        steps += 1
print(json.dumps({"steps": steps, "samples": 3200, "epochs": 4}))
