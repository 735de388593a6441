"""A frozen teacher runs forward beside the student in every step."""

import json
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
teacher = nn.Sequential(
    nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
).eval()
student = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(student.parameters())
spent, steps, began = 0.0, 0, time.perf_counter()
for epoch in range(6):
    for (x,) in DataLoader(TensorDataset(torch.randn(1600, 128)), batch_size=64):
        t = time.perf_counter()
        with torch.no_grad():
            soft = teacher(x).softmax(1)
        out = student(x)
        spent += time.perf_counter() - t
        optimizer.zero_grad()
        nn.functional.kl_div(out.log_softmax(1), soft, reduction="batchmean").backward()
        optimizer.step()
        steps += 1
        if steps == 1:
            spent, began = 0.0, time.perf_counter()
share = spent / (time.perf_counter() - began)
print(json.dumps({"steps": steps, "samples": 9600, "shares": {"forward": round(share, 3), "eval": 0.0}}))
