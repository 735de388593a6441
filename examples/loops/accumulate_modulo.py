"""Accumulation by the loader: (i + 1) % 4 == 0; what is left of an epoch is carried into the next."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
torch.set_num_threads(1)
truth, seen, batches = Truth(), 0, 0
net = nn.Sequential(
    nn.Conv1d(8, 32, 5), nn.ReLU(), nn.Conv1d(32, 64, 5), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 56, 5)
)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
ds = TensorDataset(torch.randn(864, 8, 64), torch.randint(0, 5, (864,)))
for epoch in range(27):
    for i, (xb, yb) in enumerate(DataLoader(ds, batch_size=16)):
        with truth("forward"):
            out = net(xb)
        loss = nn.functional.cross_entropy(out, yb) / 4
        with truth("backward"):
            loss.backward()
        batches += 1
        seen += len(xb)
        if (i + 1) % 4 == 0:
            with truth("optimizer"):
                opt.step()
            opt.zero_grad()
            truth.step(seen)
            seen, kept = 0, batches
print("left over", seen, "loss", round(loss.item(), 5))
truth.tell(micro_batches=kept, weights=net)
