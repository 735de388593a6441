"""A batch that is fetched and left (a peek, skipping ahead, `if i == limit: break`) counts into the next
step.

Right: 20 steps of 10 samples: 200. Before them three batches are skipped; after 10 steps the loop is left
       with a batch in hand and entered again.
Why:  probe/loader.py, LoaderHooks._arrived adds a batch when it arrives; nothing takes it back when the
      next fetch or `__iter__` comes with no backward pass between (only `_take_back` of evaluated ones
      does).
"""

import sys

from _watch import total, watched


def work():
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(300, 8)), batch_size=10)
    batches = iter(loader)
    for _ in range(3):
        next(batches)  # resumed: these were trained on before
    for _ in range(2):
        for i, (x,) in enumerate(batches):
            if i == 10:
                break
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        batches = iter(loader)


if sys.argv[1:]:
    sys.exit(work())
report, rows = watched(__file__)
said = f"{report['steps']} steps, samples {[row['samples'] for row in rows]}"
sys.exit(f"FAULT: {said}: {total(rows, 'samples')} of 200" if total(rows, "samples") != 200 else 0)
