"""Some batches raise in the loss, after their forward pass: the loop goes on without them."""

import math
import sys

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(49)
torch.set_num_threads(1)
truth = Truth()
labels = torch.randint(0, 6, (2000,))
labels[torch.arange(0, 2000, 333)] = 99  # not a class
dl = DataLoader(TensorDataset(torch.randn(2000, 110), labels), batch_size=25)
model = nn.Sequential(nn.Linear(110, 500), nn.ReLU(), nn.Linear(500, 300), nn.ReLU(), nn.Linear(300, 6))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
skipped = 0
for epoch in range(34):
    for number, (x, y) in enumerate(dl):
        try:
            with truth("forward"):
                out = model(x)
            loss = nn.functional.cross_entropy(out, y)
        except (IndexError, RuntimeError) as error:
            skipped += 1
            print(f"batch {number}: {type(error).__name__}", file=sys.stderr)
            continue
        if math.isnan(loss.item()):
            continue
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step()
print("skipped", skipped)
truth.tell(weights=model, epochs=34)
