"""TorchOpt: MetaSGD takes inner steps on the module itself; torch's Adam takes the outer one."""

import json

import torch
import torchopt
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
inner = torchopt.MetaSGD(model, lr=0.01)
outer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps = 0
for iteration in range(150):
    outer.zero_grad()
    before, state = torchopt.extract_state_dict(model), torchopt.extract_state_dict(inner)
    for task in range(4):
        phase = torch.rand(1) * 3
        x = torch.rand(20, 1) * 10 - 5
        for _ in range(2):
            inner.step((model(x[:10]) - torch.sin(x[:10] + phase)).square().mean())
        (model(x[10:]) - torch.sin(x[10:] + phase)).square().mean().div(4).backward()
        torchopt.recover_state_dict(model, before)
        torchopt.recover_state_dict(inner, state)
    outer.step()
    steps += 1
print(json.dumps({"steps": steps, "micro_batches": steps * 4, "findings": []}))
