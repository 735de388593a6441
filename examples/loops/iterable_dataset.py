"""An iterable dataset behind a DataLoader with workers."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, each = (info.id, info.num_workers) if info else (0, 1)
        for number in range(first, 900, each):
            yield torch.full((6,), float(number % 7)), number % 2


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters())
    steps = samples = 0
    for _ in range(3):
        for x, y in DataLoader(Stream(), batch_size=20, num_workers=2):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            steps += 1
            samples += y.numel()
    print(json.dumps({"steps": steps, "samples": samples, "epochs": 3}))


if __name__ == "__main__":
    main()
