"""The loop itself is a generator.

It yields after each step, and who consumes it logs, and stops when it likes.
"""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(55)
torch.set_num_threads(1)
truth = Truth()


def training(model, loader, optimizers):
    while True:
        for (x,) in loader:
            with truth("forward"):
                code = model["encoder"](x)
                out = model["decoder"](code)
            loss = (out - x).square().mean()
            for o in optimizers:
                o.zero_grad()
            with truth("backward"):
                loss.backward()
            with truth("optimizer"):
                for o in optimizers:
                    o.step()
            truth.step(len(x))
            yield loss.item()


model = nn.ModuleDict(
    {"encoder": nn.Linear(300, 64), "decoder": nn.Sequential(nn.ReLU(), nn.Linear(64, 300))}
)
optimizers = [torch.optim.Adam(part.parameters(), 1e-3) for part in model.values()]
loader = DataLoader(TensorDataset(torch.randn(1500, 300)), batch_size=25, shuffle=True)
smooth = None
for i, loss in enumerate(training(model, loader, optimizers), 1):
    smooth = loss if smooth is None else 0.98 * smooth + 0.02 * loss
    if i % 500 == 0:
        print(i, f"{smooth:.5f}")
    if i == 1500:
        break
truth.tell(weights=model, micro_batches=1500)
