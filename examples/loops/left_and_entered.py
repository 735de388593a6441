"""The loop is left after so many batches, a checkpoint is saved, and it is entered again."""

import io

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(47)
torch.set_num_threads(1)
truth = Truth()
loader = DataLoader(TensorDataset(torch.randn(3000, 90), torch.randn(3000, 1)), batch_size=30, shuffle=True)
model = nn.Sequential(nn.Linear(90, 500), nn.ELU(), nn.Linear(500, 500), nn.ELU(), nn.Linear(500, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def some_steps(limit):
    for i, (x, y) in enumerate(loader):
        if i == limit:
            return
        with truth("forward"):
            out = model(x)
        loss = (out - y).square().mean()
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(x))


for limit in (40, 25, 60, 10, 100, 75, 1, 80) * 4:
    some_steps(limit)
    buffer = io.BytesIO()
    with truth("checkpoint"):
        torch.save(model.state_dict(), buffer)
    print("after", truth.steps, "size", buffer.tell() > 1000)
truth.tell(weights=model)
