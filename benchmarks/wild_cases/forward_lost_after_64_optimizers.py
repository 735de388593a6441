"""A model and an optimizer made anew again and again (Reptile, folds, trials): forward is 0 after the 64th.

Right: forward in every step.
Why:  probe/training.py:41,253: modules are looked for with the first DISCOVERIES = 64 optimizers only,
      counted over the whole run, not those that live. Also: a new model's first step has forward 0, since
      it is hooked after its first optimizer step; the report's share is then too small, never null.
"""

import sys

from _watch import watched


def work():
    import copy

    import torch

    base = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    for _ in range(150):
        model = copy.deepcopy(base)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(64, 64)).square().mean().backward()
            optimizer.step()


if sys.argv[1:]:
    sys.exit(work())
_, rows = watched(__file__)
none = [i for i, row in enumerate(rows) if not float(row["forward_ms"])]
sys.exit(f"FAULT: no forward in {len(none)} of {len(rows)} steps: {none[:4]} ... {none[-3:]}" if none else 0)
