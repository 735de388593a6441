"""MAML: inner steps by autograd.grad on fast weights, one outer step over four tasks."""

import torch
import torch.nn.functional as F
from _truth import Truth

torch.manual_seed(24)
torch.set_num_threads(1)
truth = Truth()
weights = [(torch.randn(s) * 0.1).requires_grad_() for s in ((64, 1), (64,), (64, 64), (64,), (1, 64), (1,))]
meta = torch.optim.Adam(weights, lr=1e-3)


def net(x, w):
    x = F.relu(F.linear(x, w[0], w[1]))
    x = F.relu(F.linear(x, w[2], w[3]))
    return F.linear(x, w[4], w[5])


def task():
    amplitude, phase = torch.rand(()) * 4.9 + 0.1, torch.rand(()) * 3.14
    return lambda n: (x := torch.rand(n, 1) * 10 - 5, amplitude * torch.sin(x + phase))


for iteration in range(420):
    outer = 0.0
    for f in [task() for _ in range(4)]:
        fast = weights
        for _ in range(3):
            x, y = f(10)
            with truth("forward"):
                inner = F.mse_loss(net(x, fast), y)
            with truth("backward"):
                gradients = torch.autograd.grad(inner, fast, create_graph=True)
            fast = [w - 0.01 * g for w, g in zip(fast, gradients)]
        x, y = f(10)
        with truth("forward"):
            outer = outer + F.mse_loss(net(x, fast), y)
    meta.zero_grad()
    with truth("backward"):
        (outer / 4).backward()
    with truth("optimizer"):
        meta.step()
    truth.step()
    if iteration % 50 == 0:
        print(iteration, f"{outer.item():.5f}")
truth.tell(weights=weights)
