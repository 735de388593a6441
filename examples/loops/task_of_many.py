"""Many tasks, a loader each; every step takes the next batch of one. Batch sizes differ."""

import random

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(59)
torch.manual_seed(59)
torch.set_num_threads(1)
truth = Truth()
loaders = {
    name: DataLoader(TensorDataset(torch.randn(n, 60), torch.randint(0, 3, (n,))), batch_size=b, shuffle=True)
    for name, n, b in (("a", 400, 20), ("b", 640, 32), ("c", 250, 50))
}
iterators = {name: iter(loader) for name, loader in loaders.items()}
shared, heads = (
    nn.Sequential(nn.Linear(60, 500), nn.ReLU()),
    nn.ModuleDict({n: nn.Linear(500, 3) for n in loaders}),
)
optimizer = torch.optim.Adam([*shared.parameters(), *heads.parameters()])


def draw(task):
    try:
        return next(iterators[task])
    except StopIteration:
        iterators[task] = iter(loaders[task])
        return next(iterators[task])


for step in range(1500):
    task = random.choice(list(loaders))
    x, y = draw(task)
    with truth("forward"):
        out = heads[task](shared(x))
    loss = nn.functional.cross_entropy(out, y)
    optimizer.zero_grad()
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        optimizer.step()
    truth.step(len(x))
print(loss.item())
truth.tell(weights=[shared, heads])
