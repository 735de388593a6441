"""Validation over slices of a tensor, without a loader."""

import json
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
X, y = torch.randn(1024, 128), torch.randint(0, 10, (1024,))
model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.Adam(model.parameters())
steps, spent, began = 0, 0.0, time.perf_counter()


def accuracy():
    model.eval()
    with torch.no_grad():
        right = 0
        for i in range(0, 512, 64):
            right += (model(X[i : i + 64]).argmax(1) == y[i : i + 64]).sum()
    model.train()
    return right.item() / 512


for epoch in range(20):
    for i in range(512, 1024, 64):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(X[i : i + 64]), y[i : i + 64]).backward()
        optimizer.step()
        steps += 1
    t = time.perf_counter()
    accuracy()
    spent += time.perf_counter() - t
share = spent / (time.perf_counter() - began)
print(json.dumps({"steps": steps, "shares": {"eval": round(share, 3)}}))
