"""Trials one after another, as optuna's study.optimize does it: an objective, pruning by an exception."""

import random

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

truth = Truth()
X, y = torch.randn(720, 32, generator=torch.Generator().manual_seed(27)), torch.arange(720) % 4


class TrialPruned(Exception):
    pass


class Trial:
    def __init__(self, number):
        self.number, self.reported = number, []

    def suggest_int(self, low, high):
        return random.randint(low, high)

    def suggest_float(self, low, high):
        return random.uniform(low, high)

    def report(self, value):
        self.reported.append(value)

    def should_prune(self):
        return self.number == 2 and len(self.reported) == 2


def objective(trial):
    layers, width = [], 32
    for _ in range(trial.suggest_int(1, 3)):
        out = trial.suggest_int(64, 256)
        layers += [nn.Linear(width, out), nn.ReLU()]
        width = out
    model = nn.Sequential(*layers, nn.Linear(width, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=trial.suggest_float(1e-4, 1e-2))
    train = DataLoader(TensorDataset(X[:600], y[:600]), batch_size=20, shuffle=True)
    for epoch in range(18):
        model.train()
        for a, b in train:
            optimizer.zero_grad()
            with truth("forward"):
                out = model(a)
            loss = nn.functional.cross_entropy(out, b)
            with truth("backward"):
                loss.backward()
            with truth("optimizer"):
                optimizer.step()
            truth.step(len(a))
        model.eval()
        with torch.no_grad(), truth("eval"):
            accuracy = (model(X[600:]).argmax(1) == y[600:]).float().mean().item()
        trial.report(accuracy)
        if trial.should_prune():
            raise TrialPruned
    return accuracy


class Study:
    def optimize(self, function, n_trials):
        for number in range(n_trials):
            try:
                value = function(Trial(number))
                print(f"Trial {number} finished with value: {value:.4f}")
            except TrialPruned:
                print(f"Trial {number} pruned.")


random.seed(27)
torch.manual_seed(27)
torch.set_num_threads(1)
Study().optimize(objective, n_trials=6)
truth.tell()
