"""while True with a break when the loss has been flat long enough or the budget is used up."""

import torch
from _truth import Truth
from torch import nn

torch.manual_seed(14)
torch.set_num_threads(1)
truth = Truth()
target = torch.sin(torch.linspace(0, 12, 2000))[:, None]
grid = torch.linspace(-1, 1, 2000)[:, None]
siren = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(siren.parameters(), lr=5e-3)
best, patience = float("inf"), 0
while True:
    optimizer.zero_grad()
    with truth("forward"):
        out = siren(grid)
    loss = (out - target).square().mean()
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        optimizer.step()
    truth.step()
    current = loss.item()
    patience = 0 if current < best - 1e-5 else patience + 1
    best = min(best, current)
    if patience > 400 or truth.steps == 900:
        break
print("stopped after", truth.steps, "best", best)
truth.tell(weights=siren, micro_batches=truth.steps)
