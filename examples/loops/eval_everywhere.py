"""Evaluation before the first step, every 40 steps within an epoch, after each epoch, and at the end."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

truth = Truth()


def make(n, batch, shuffle=False):
    return DataLoader(TensorDataset(torch.randn(n, 80), torch.randint(0, 6, (n,))), batch, shuffle=shuffle)


def evaluate(model, loader):
    was = model.training
    model.eval()
    total = 0.0
    with truth("eval"), torch.no_grad():
        for x, y in loader:
            total += nn.functional.cross_entropy(model(x), y, reduction="sum").item()
    model.train(was)
    return total / len(loader.dataset)


def main():
    torch.manual_seed(29)
    torch.set_num_threads(1)
    train, valid, test = make(2400, 24, True), make(480, 60), make(600, 60)
    model = nn.Sequential(nn.Linear(80, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    print("before", evaluate(model, test))
    step = 0
    for epoch in range(18):
        for x, y in train:
            with truth("forward"):
                out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            optimizer.zero_grad()
            with truth("backward"):
                loss.backward()
            with truth("optimizer"):
                optimizer.step()
            truth.step(len(x))
            step += 1
            if step % 40 == 0:
                print("step", step, evaluate(model, valid))
        print("epoch", epoch, evaluate(model, test))
    print("after", evaluate(model, test))
    truth.tell(weights=model, epochs=18)


main()
