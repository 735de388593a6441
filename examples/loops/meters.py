"""One loader, one optimizer, meters for the data time as in the ImageNet example."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from _truth import Truth
from torch.utils.data import DataLoader, TensorDataset

truth = Truth()


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def train(loader, model, criterion, optimizer, epoch):
    data_time, losses = AverageMeter(), AverageMeter()
    model.train()
    end = time.perf_counter()
    for images, target in loader:
        waited = time.perf_counter() - end
        data_time.update(waited)
        truth.add("data", waited)
        with truth("forward"):
            output = model(images)
        loss = criterion(output, target)
        losses.update(loss.item(), images.size(0))
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(images.size(0))
        end = time.perf_counter()
    print(f"epoch {epoch} loss {losses.avg:.5f}")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    X, y = torch.randn(4100, 256), torch.randint(0, 10, (4100,))
    loader = DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(18):
        train(loader, model, F.cross_entropy, optimizer, epoch)
    truth.tell(epochs=18, weights=model)


if __name__ == "__main__":
    main()
