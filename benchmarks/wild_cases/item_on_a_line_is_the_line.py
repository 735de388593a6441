"""`total += g * min(1.0, 1.0 / norm.item())` on the CPU: "values read every step", though .item() takes 2 %
of the line.

Right: no host_sync: measured, the line takes 8.6 us, norm.item() 0.2 us of it.
Why:  diagnosis/signals/stack_attribution.py, kind_of: the leaf is the user's own frame (C functions are no
      frames), so `own and _SYNC.search(source)` takes any line that has `.item(` in its text for time
      spent reading. And a warning is given from 2 stacks on (SAMPLES), here 6.
"""

import sys

from _watch import watched


def work():
    import torch

    torch.set_num_threads(1)
    params = [torch.nn.Parameter(torch.randn(*s) * 0.01) for s in ((200, 50), (200,), (2, 200), (2,))]
    optimizer, x = torch.optim.SGD(params, lr=0.1), torch.randn(1, 50)
    for _ in range(700):
        summed = [torch.zeros_like(p) for p in params]
        for _ in range(8):
            h = (params[0] @ x[0] + params[1]).relu()
            grads = torch.autograd.grad((params[2] @ h + params[3]).square().sum(), params)
            norm = grads[0].norm()
            for _ in range(4):
                for total, g in zip(summed, grads, strict=True):
                    total += g * min(1.0, 1.0 / (norm.item() + 1e-6))
        for p, total in zip(params, summed, strict=True):
            p.grad = total
        optimizer.step()


if sys.argv[1:]:
    sys.exit(work())
report, rows = watched(__file__)
loud = [f for f in report["findings"] if f["code"] == "host_sync"]
sys.exit(f"FAULT: {loud[0]['severity']} {loud[0]['evidence']} gain {loud[0]['gain']}" if loud else 0)
