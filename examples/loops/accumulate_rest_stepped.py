"""Accumulation with a smaller last step: windows of 5 batches, cut by itertools.islice to the end."""

from itertools import islice

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def windows(iterator, n):
    while window := list(islice(iterator, n)):
        yield window


torch.manual_seed(2)
torch.set_num_threads(1)
truth = Truth()
model = nn.Sequential(nn.Linear(300, 400), nn.GELU(), nn.Linear(400, 400), nn.GELU(), nn.Linear(400, 1))
optimizer = torch.optim.AdamW(model.parameters())
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
loader = DataLoader(TensorDataset(torch.randn(2208, 300), torch.randn(2208, 1)), batch_size=32)  # 69 batches
pieces = 0
for epoch in range(24):
    for window in windows(iter(loader), 5):
        total = sum(len(x) for x, _ in window)
        for x, y in window:
            with truth("forward"):
                prediction = model(x)
            loss = ((prediction - y) ** 2).sum() / total
            with truth("backward"):
                loss.backward()
            pieces += 1
        with truth("optimizer"):
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        scheduler.step()
        truth.step(total)
print(f"{loss.item():.6f}")
truth.tell(micro_batches=pieces, epochs=24, weights=model)
