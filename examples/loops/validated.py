"""Training and validation after every epoch, both from loaders."""

import json
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(
    TensorDataset(torch.randn(640, 64), torch.randint(0, 4, (640,))), batch_size=32, shuffle=True
)
valid = DataLoader(TensorDataset(torch.randn(320, 64), torch.randint(0, 4, (320,))), batch_size=64)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4))
optimizer = torch.optim.Adam(model.parameters())
steps, spent, began = 0, 0.0, time.perf_counter()
for epoch in range(12):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        steps += 1
    t = time.perf_counter()
    model.eval()
    with torch.inference_mode():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in valid)
    spent += time.perf_counter() - t
share = spent / (time.perf_counter() - began)
print(json.dumps({"steps": steps, "samples": 640 * 12, "epochs": 12, "shares": {"eval": round(share, 3)}}))
