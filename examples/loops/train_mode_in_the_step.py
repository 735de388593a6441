"""model.train() and model.eval() are called inside the step functions."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 40), nn.Dropout(0.1), nn.ReLU(), nn.Linear(40, 2))
optimizer = torch.optim.Adam(model.parameters())


def train_step(batch):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss.item()


def valid_step(batch):
    model.eval()
    with torch.no_grad():
        return nn.functional.cross_entropy(model(batch[0]), batch[1]).item()


make = lambda n: DataLoader(TensorDataset(torch.randn(n, 10), torch.randint(0, 2, (n,))), batch_size=20)  # noqa: E731
train, valid = make(600), make(100)
history = [(sum(map(train_step, train)), sum(map(valid_step, valid))) for _ in range(9)]
print(json.dumps({"steps": 30 * len(history), "samples": 600 * len(history), "epochs": len(history)}))
