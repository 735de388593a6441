"""Batches come from a generator that takes 4 ms: the report says data 0.0, where nothing was measured.

Right: null, or about 0.9 as sampled (the stacks that untracked_time shows stand in the generator).
Why:  report/measure.py:70-77 makes h2d and forward null where nobody could see them, data never; that no
      DataLoader was seen is known (`not_checked`: data_starvation, "no DataLoader seen").
"""

import sys

from _watch import watched


def work():
    import time

    import torch

    def batches():
        for _ in range(500):
            time.sleep(0.004)
            yield torch.randn(16, 8)

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in batches():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


if sys.argv[1:]:
    sys.exit(work())
report, _ = watched(__file__)
sys.exit("FAULT: data 0.0, waited for it 0.9" if report["time_share"]["data"] == 0.0 else 0)
