"""A DataLoader with workers, and a Prefetcher that holds the next batch ready, as in NVIDIA's examples."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 1440

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(100, generator=g), i % 5


class Prefetcher:
    def __init__(self, loader, truth):
        self.loader, self.truth = iter(loader), truth
        self.preload()

    def preload(self):
        with self.truth("data"):
            self.ahead = next(self.loader, None)

    def next(self):
        batch = self.ahead
        if batch is not None:
            self.preload()
        return batch


def main():
    torch.manual_seed(45)
    torch.set_num_threads(1)
    truth = Truth()
    loader = DataLoader(Rows(), batch_size=24, num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.Linear(100, 800), nn.ReLU(), nn.Linear(800, 400), nn.ReLU(), nn.Linear(400, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(16):
        prefetcher = Prefetcher(loader, truth)
        batch = prefetcher.next()
        while batch is not None:
            x, y = batch
            with truth("forward"):
                out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            optimizer.zero_grad()
            with truth("backward"):
                loss.backward()
            with truth("optimizer"):
                optimizer.step()
            truth.step(len(x))
            batch = prefetcher.next()
        print(epoch, loss.item())
    truth.tell(weights=model, epochs=16, findings=["data_starvation", "too_many_workers"])


if __name__ == "__main__":
    main()
