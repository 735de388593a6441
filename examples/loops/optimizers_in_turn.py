"""Two optimizers, one in even iterations and one in odd ones."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
left, right = nn.Linear(10, 10), nn.Linear(10, 10)
turns = [torch.optim.SGD(left.parameters(), 0.01), torch.optim.SGD(right.parameters(), 0.01)]
loader = DataLoader(TensorDataset(torch.randn(300, 10)), batch_size=5)
done = 0
for _ in range(5):
    for (x,) in loader:
        optimizer = turns[done % 2]
        loss = (right(left(x)) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
print(json.dumps({"steps": done, "samples": 1500, "epochs": 5}))
