"""A step that accumulates over the end of an epoch, with a loader made anew: the new loader's samples are
lost.

Right: 3 epochs x 6 batches of 10 = 18 batches, a step every 4th of all: 4 steps, 160 samples.
Why:  probe/loader.py, LoaderHooks._arrived: `_in_step` is the first loader of the step; a batch of another
      object counts nothing ("two loaders side by side"), also when the first one is exhausted and both
      have one `origin`.
"""

import sys

from _watch import total, watched


def work():
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    model = torch.nn.Linear(8, 1)
    optimizer, n = torch.optim.SGD(model.parameters(), lr=0.1), 0
    for _ in range(3):
        for (x,) in DataLoader(TensorDataset(torch.randn(60, 8)), batch_size=10):
            model(x).square().mean().backward()
            n += 1
            if n % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()


if sys.argv[1:]:
    sys.exit(work())
report, rows = watched(__file__)
each = [row["samples"] for row in rows]
said = f"{report['steps']} steps, samples {each}, in all {total(rows, 'samples')} of 160"
sys.exit(f"FAULT: {said}" if total(rows, "samples") != 160 else 0)
