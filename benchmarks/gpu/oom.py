"""The batch grows until there is no room for it: the run ends with an out-of-memory error.

It may take a fifth of the device at most, so that whoever shares it keeps theirs. Ends with status 1.
"""

import torch
from loop import Loop, perceptron

loop = Loop(__doc__)
if not loop.small:
    torch.cuda.set_per_process_memory_fraction(0.2)
model = perceptron(loop, 2048, 8)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
rows = 64
for _ in loop.steps(range(1000)):
    loss = model(torch.randn(rows, model[0].in_features, device=loop.device)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if loop.small and rows > 256:
        raise SystemExit("no device here that could run out of memory")
    rows *= 2
