"""A learning rate range test on a copy of the model first, then the training.

Another optimizer, the same loader.
"""

import copy

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(62)
torch.set_num_threads(1)
truth = Truth()
loader = DataLoader(TensorDataset(torch.randn(2400, 50), torch.randn(2400, 1)), batch_size=24, shuffle=True)


def step(model, optimizer, x, y):
    with truth("forward"):
        out = model(x)
    loss = nn.functional.mse_loss(out, y)
    optimizer.zero_grad()
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        optimizer.step()
    truth.step(len(x))
    return loss.item()


def find(model, low=1e-5, high=1.0, count=80):
    trial = copy.deepcopy(model)
    optimizer = torch.optim.SGD(trial.parameters(), lr=low)
    best, found = float("inf"), low
    for i, (x, y) in zip(range(count), loader):
        for group in optimizer.param_groups:
            group["lr"] = low * (high / low) ** (i / count)
        loss = step(trial, optimizer, x, y)
        if loss < best:
            best, found = loss, optimizer.param_groups[0]["lr"]
    return found / 10


model = nn.Sequential(nn.Linear(50, 400), nn.ReLU(), nn.Linear(400, 300), nn.ReLU(), nn.Linear(300, 1))
lr = find(model)
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
for epoch in range(14):
    losses = [step(model, optimizer, x, y) for x, y in loader]
print(f"lr {lr:.3e} loss {sum(losses) / len(losses):.5f}")
truth.tell(weights=model)
