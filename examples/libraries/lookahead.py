"""pytorch-optimizer: Lookahead around RAdam: an optimizer that steps another inside its own step."""

import json

import torch
from pytorch_optimizer import Lookahead
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 384), nn.ReLU(), nn.Linear(384, 64))
optimizer = Lookahead(torch.optim.RAdam(model.parameters(), lr=1e-3), k=5, alpha=0.5)
for step in range(900):
    x = torch.randn(32, 64)
    optimizer.zero_grad()
    (model(x) - x).square().mean().backward()
    optimizer.step()
print(json.dumps({"steps": 900, "micro_batches": 900, "findings": []}))
