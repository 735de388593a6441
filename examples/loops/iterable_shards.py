"""An IterableDataset over shards, two workers, each with its part; persistent workers."""

import time

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shards(IterableDataset):
    def __init__(self, shards, rows):
        self.shards, self.rows = shards, rows

    def __iter__(self):
        info = get_worker_info()
        first, stride = (info.id, info.num_workers) if info else (0, 1)
        for shard in range(first, self.shards, stride):
            g = torch.Generator().manual_seed(shard)
            block = torch.randn(self.rows, 96, generator=g)
            yield from block


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    truth = Truth()
    loader = DataLoader(Shards(10, 320), batch_size=40, num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.Linear(96, 768), nn.ReLU(), nn.Linear(768, 96))
    optimizer = torch.optim.Adamax(model.parameters())
    for epoch in range(16):
        end = time.perf_counter()
        for x in loader:
            truth.add("data", time.perf_counter() - end)
            with truth("forward"):
                y = model(x)
            loss = nn.functional.mse_loss(y, x)
            optimizer.zero_grad()
            with truth("backward"):
                loss.backward()
            with truth("optimizer"):
                optimizer.step()
            truth.step(len(x))
            end = time.perf_counter()
        print(epoch, f"{loss.item():.6f}")
    truth.tell(weights=model, epochs=16, findings=["data_starvation", "too_many_workers"])


if __name__ == "__main__":
    main()
