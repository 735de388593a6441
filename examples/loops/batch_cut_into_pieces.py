"""A large batch is fetched once and cut into pieces that fit."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(24, 96), nn.GELU(), nn.Linear(96, 24))
opt = torch.optim.AdamW(net.parameters())
loader = DataLoader(TensorDataset(torch.randn(1280, 24)), batch_size=64, drop_last=True)
steps = pieces = 0
for _ in range(6):
    for (big,) in loader:
        opt.zero_grad(set_to_none=True)
        for piece in big.chunk(4):
            ((net(piece) - piece) ** 2).mean().div(4).backward()
            pieces += 1
        opt.step()
        steps += 1
print(json.dumps({"steps": steps, "samples": 1280 * 6, "micro_batches": pieces}))
