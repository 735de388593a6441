"""TorchOpt: its own Adam, which looks like torch.optim's and is none of its children.

It writes through .data.
"""

import json

import torch
import torchopt
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))
optimizer, steps = torchopt.Adam(net.parameters(), lr=1e-3), 0
for epoch in range(6):
    for x, y in DataLoader(TensorDataset(torch.randn(1600, 64), torch.randint(0, 4, (1600,))), batch_size=32):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
print("loss", loss.item())
print(json.dumps({"steps": steps, "samples": 9600, "epochs": 6, "or_zero": True, "findings": []}))
