"""Pieces that the test's training loops are made of: small, on the CPU, and the same for the same seed."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES = 6
ROWS = 48
BATCH = 8
#: Batches of one epoch.
BATCHES = ROWS // BATCH


def net(out: int = 1) -> nn.Sequential:
    """Two layers, and a dropout that draws random numbers."""
    return nn.Sequential(nn.Linear(FEATURES, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, out))


def data(rows: int = ROWS) -> TensorDataset:
    """Features and a target."""
    return TensorDataset(torch.randn(rows, FEATURES), torch.randn(rows, 1))


def loader(rows: int = ROWS, **options: Any) -> DataLoader[Any]:
    """BATCHES batches, shuffled."""
    return DataLoader(data(rows), **{"batch_size": BATCH, "shuffle": True, **options})


def sgd(model: nn.Module, **options: Any) -> torch.optim.SGD:
    """With momentum, so that the optimizer has a state as well."""
    return torch.optim.SGD(model.parameters(), **{"lr": 0.05, "momentum": 0.9, **options})


def error(model: nn.Module, batch: Any) -> torch.Tensor:
    """The loss of one batch."""
    features, target = batch
    return (model(features) - target).pow(2).mean()


def learn(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Any) -> float:
    """One ordinary training step; returns its loss."""
    optimizer.zero_grad()
    loss = error(model, batch)
    loss.backward()
    optimizer.step()
    return loss.item()
