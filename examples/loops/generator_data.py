"""Batches come out of a generator that augments them on the spot."""

import random

import torch
from _truth import Truth
from torch import nn

random.seed(6)
torch.manual_seed(6)
torch.set_num_threads(1)
truth = Truth()


def augmented(images, labels, size, rounds):
    index = list(range(len(images)))
    for _ in range(rounds):
        random.shuffle(index)
        for i in range(0, len(index) - size + 1, size):
            rows = index[i : i + size]
            batch = torch.stack(
                [torch.roll(images[r], random.randrange(5), 1) + 0.05 * torch.randn(3, 24, 24) for r in rows]
            )
            yield batch, labels[rows]


cnn = nn.Sequential(
    nn.Conv2d(3, 8, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(1296, 4),
)
optimizer = torch.optim.SGD(cnn.parameters(), lr=0.01)
source = augmented(torch.randn(480, 3, 24, 24), torch.randint(0, 4, (480,)), 32, 60)
while True:
    with truth("data"):
        batch = next(source, None)
    if batch is None:
        break
    x, y = batch
    with truth("forward"):
        out = cnn(x)
    loss = nn.functional.cross_entropy(out, y)
    optimizer.zero_grad()
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        optimizer.step()
    truth.step()
print(f"loss {loss:.6f}")
truth.tell(weights=cnn, findings=["data_starvation", "untracked_time"])
