"""Zuko: a flow that is called to give a distribution; the work is in its log_prob."""

import json
import time

import torch
import zuko
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
flow = zuko.flows.MAF(features=4, context=2, transforms=3, hidden_features=(64, 64))
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(3200, 4), torch.randn(3200, 2)), batch_size=64, shuffle=True)
forward, steps, began = 0.0, 0, time.perf_counter()
for epoch in range(8):
    for x, c in loader:
        t = time.perf_counter()
        loss = -flow(c).log_prob(x).mean()
        forward += time.perf_counter() - t
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
share = forward / (time.perf_counter() - began)
told = {"steps": steps, "samples": steps * 64, "epochs": 8, "findings": []}
print(json.dumps({**told, "shares": {"forward": round(share, 3)}}))
