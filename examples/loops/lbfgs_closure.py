"""LBFGS: the closure runs as often as the line search wants."""

import torch
from _truth import Truth
from torch import nn

torch.manual_seed(15)
torch.set_num_threads(1)
truth, X, y = Truth(), torch.randn(800, 40), torch.randn(800, 1)
model = nn.Sequential(nn.Linear(40, 128), nn.Softplus(), nn.Linear(128, 1))
optimizer = torch.optim.LBFGS(
    model.parameters(), lr=0.5, max_iter=12, history_size=8, line_search_fn="strong_wolfe"
)
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    with truth("forward"):
        out = model(X)
    loss = ((out - y) ** 2).mean()
    with truth("backward"):
        loss.backward()
    return loss


for _ in range(190):
    loss = optimizer.step(closure)
    truth.step()
print("evaluations", calls, "loss", float(loss))
truth.tell(weights=model)
