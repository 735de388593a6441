"""autocast and a gradient scaler on the CPU."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
steps = 0
for _ in range(5):
    for x, y in DataLoader(TensorDataset(torch.randn(640, 64), torch.randint(0, 8, (640,))), batch_size=16):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x).float(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        steps += 1
print(json.dumps({"steps": steps, "samples": 3200, "epochs": 5}))
