"""Gradients of four batches a step; what is left at an epoch's end makes a smaller step."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.loader = DataLoader(TensorDataset(torch.randn(420, 16), torch.randn(420, 1)), batch_size=10)
        self.steps = self.batches = 0

    def fit(self, epochs):
        for _ in range(epochs):
            self.epoch()

    def epoch(self):
        last = len(self.loader)
        for number, (x, y) in enumerate(self.loader, 1):
            loss = (self.model(x) - y).pow(2).mean() / ACCUMULATE
            loss.backward()
            self.batches += 1
            if number % ACCUMULATE == 0 or number == last:
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.steps += 1


torch.manual_seed(0)
trainer = Trainer()
trainer.fit(8)
print(json.dumps({"steps": trainer.steps, "samples": 420 * 8, "micro_batches": trainer.batches, "epochs": 8}))
