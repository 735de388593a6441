"""Adam with a closure first, LBFGS with another after it; both closures are local functions."""

import torch
from _truth import Truth
from torch import nn


def fit(model, x, y, truth):
    warm = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(600):

        def evaluate():
            warm.zero_grad()
            with truth("forward"):
                out = model(x)
            loss = nn.functional.mse_loss(out, y)
            with truth("backward"):
                loss.backward()
            return loss

        warm.step(evaluate)
        truth.step()
    fine = torch.optim.LBFGS(model.parameters(), max_iter=5)

    def objective():
        fine.zero_grad()
        with truth("forward"):
            out = model(x)
        loss = nn.functional.mse_loss(out, y)
        with truth("backward"):
            loss.backward()
        return loss

    for _ in range(200):
        value = fine.step(objective)
        truth.step()
    return value


torch.manual_seed(16)
torch.set_num_threads(1)
truth = Truth()
x = torch.randn(600, 30)
net = nn.Sequential(nn.Linear(30, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
print(f"{fit(net, x, x.prod(1, keepdim=True), truth).item():.6e}")
truth.tell(weights=net)
