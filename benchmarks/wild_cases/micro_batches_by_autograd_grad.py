"""Eight autograd.grad calls, summed by hand into p.grad, make a step: micro_batches says 1, backward_calls 0.

Right: 8 (CONTRACT: "`micro_batches` counts what it was accumulated from"), or null: it was not counted.
Why:  probe/training.py:84, _timed_grad only times: "no training by itself: a penalty, an attack". Then
      adapters/plain.py:101, close(): max(1, ...) makes 1 of 0 passes, a number that nobody took.
"""

import sys

from _watch import total, watched


def work():
    import torch

    model = torch.nn.Linear(8, 1)
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    for _ in range(100):
        summed = [torch.zeros_like(p) for p in parameters]
        for _ in range(8):
            found = torch.autograd.grad(model(torch.randn(4, 8)).square().mean(), parameters)
            for into, gradient in zip(summed, found, strict=True):
                into += gradient
        for p, gradient in zip(parameters, summed, strict=True):
            p.grad = gradient
        optimizer.step()


if sys.argv[1:]:
    sys.exit(work())
report, rows = watched(__file__)
passes = total(rows, "micro_batches")
sys.exit(f"FAULT: {passes} of 800 micro-batches, {report['steps']} steps" if passes not in (0, 800) else 0)
