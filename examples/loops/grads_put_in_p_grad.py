"""autograd.grad, then each gradient is put into p.grad (per-sample clipping as DP-SGD does it by hand)."""

import torch
from _truth import Truth
from torch import nn

torch.manual_seed(39)
torch.set_num_threads(1)
truth = Truth()
model = nn.Sequential(nn.Linear(50, 200), nn.ReLU(), nn.Linear(200, 2))
params = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(params, lr=0.1)
X, y = torch.randn(2000, 50), torch.randint(0, 2, (2000,))
micro = 0
for step in range(480):
    rows = torch.randint(2000, (8,))
    summed = [torch.zeros_like(p) for p in params]
    for i in rows:
        with truth("forward"):
            out = model(X[i : i + 1])
        loss = nn.functional.cross_entropy(out, y[i : i + 1])
        with truth("backward"):
            grads = torch.autograd.grad(loss, params)
        norm = torch.sqrt(sum(g.pow(2).sum() for g in grads))
        for total, g in zip(summed, grads):
            total += g * min(1.0, 1.0 / norm.item())
        micro += 1
    for p, total in zip(params, summed):
        p.grad = (total + 0.1 * torch.randn_like(total)) / len(rows)
    with truth("optimizer"):
        optimizer.step()
    truth.step()
print(float(loss))
truth.tell(weights=model, micro_batches=micro)
