"""Sharpness-aware: two backward passes and a step."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SAM(torch.optim.Optimizer):
    def __init__(self, params, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = torch.optim.SGD(self.param_groups, **kwargs)

    @torch.no_grad()
    def first(self):
        norm = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]).norm()
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["e"] = p.grad * group["rho"] / (norm + 1e-12)
                p.add_(self.state[p]["e"])
        self.zero_grad()

    @torch.no_grad()
    def second(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p]["e"])
        self.base.step()
        self.zero_grad()

    def step(self, closure=None):
        raise NotImplementedError


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer, steps = SAM(model.parameters(), lr=0.05), 0
for _ in range(4):
    for x, y in DataLoader(TensorDataset(torch.randn(960, 20), torch.randint(0, 5, (960,))), batch_size=16):
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.first()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.second()
        steps += 1
print(json.dumps({"steps": steps, "samples": 3840, "epochs": 4}))
