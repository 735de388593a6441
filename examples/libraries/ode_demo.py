"""torchdiffeq: its ODE demo; a solver calls the model, batches are drawn by hand, evaluation now and then."""

import json
import time

import torch
from torch import nn
from torchdiffeq import odeint

torch.manual_seed(0)
torch.set_num_threads(1)
size, t_end, batch_time = 1000, 25.0, 10
true_y0, t = torch.tensor([[2.0, 0.0]]), torch.linspace(0.0, t_end, size)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


class Lambda(nn.Module):
    def forward(self, t, y):
        return torch.mm(y**3, true_A)


with torch.no_grad():
    true_y = odeint(Lambda(), true_y0, t, method="dopri5")


def get_batch():
    s = torch.randperm(size - batch_time)[:20]
    return true_y[s], t[:batch_time], torch.stack([true_y[s + i] for i in range(batch_time)], dim=0)


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 2))

    def forward(self, t, y):
        return self.net(y**3)


func = ODEFunc()
optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-3)
forward = backward = evaluation = 0.0
for itr in range(250):
    if itr == 1:
        began, forward, backward, evaluation = time.perf_counter(), 0.0, 0.0, 0.0
    optimizer.zero_grad()
    y0, batch_t, batch_y = get_batch()
    a = time.perf_counter()
    pred_y = odeint(func, y0, batch_t)
    b = time.perf_counter()
    loss = torch.mean(torch.abs(pred_y - batch_y))
    c = time.perf_counter()
    loss.backward()
    d = time.perf_counter()
    optimizer.step()
    forward, backward = forward + b - a, backward + d - c
    if itr and itr % 50 == 0:
        e = time.perf_counter()
        with torch.no_grad():
            print(f"Iter {itr:04d} | {torch.mean(torch.abs(odeint(func, true_y0, t) - true_y)).item():.6f}")
        evaluation += time.perf_counter() - e
whole = time.perf_counter() - began
told = {"steps": 250, "findings": ["untracked_time", "eval_share"]}
print(
    json.dumps(
        {**told, "shares": {"backward": round(backward / whole, 3), "eval": round(evaluation / whole, 3)}}
    )
)
