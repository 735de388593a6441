"""Two optimizers, the batch fetched inside the method that is an iteration: samples are counted twice at
times.

Right: 200 steps of 10 samples: 2,000. (pytorch-metric-learning's trainers are written so: 24,280 of
       24,000.)
Why:  probe/loop_position.py, same_iteration: the calls of `iteration()` stand in one place, and
      `before[:2] != after[:2]` compares id(frame). Where the new frame lies at the old one's address it
      looks deeper and is right; where it lies elsewhere "two calls made in the same place" are one
      iteration, so the fetch ends no step (adapters/plain.py, on_fetch). The step is then ended late, and
      close_late hands the new step all samples so far: SAMPLES, TOKENS, ELEMENTS are not in COUNTED, so
      nothing is subtracted.
"""

import sys

from _watch import total, watched


def work():
    import sys as system

    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Trainer:
        def __init__(self):
            self.parts = [torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)]
            self.optimizers = [torch.optim.SGD(p.parameters(), lr=0.01) for p in self.parts]
            self.loader = DataLoader(TensorDataset(torch.randn(200, 8)), batch_size=10)
            self.batches, self.kept = iter(self.loader), []

        def batch(self):
            try:
                return next(self.batches)
            except StopIteration:
                self.batches = iter(self.loader)
                return next(self.batches)

        def iteration(self):
            if len(self.kept) < 50:
                self.kept.append(system._getframe())  # as a traceback or a closure may: its address is taken
            for o in self.optimizers:
                o.zero_grad()
            (x,) = self.batch()
            self.parts[1](self.parts[0](x)).square().mean().backward()
            for o in self.optimizers:
                o.step()

    trainer = Trainer()
    for _ in range(200):
        trainer.iteration()


if sys.argv[1:]:
    sys.exit(work())
report, rows = watched(__file__)
odd = [(i, row["samples"]) for i, row in enumerate(rows) if float(row["samples"] or 0) != 10]
sys.exit(
    f"FAULT: {report['steps']} of 200 steps, {total(rows, 'samples')} of 2000 samples: {odd[:8]}"
    if odd
    else 0
)
