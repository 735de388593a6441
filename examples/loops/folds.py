"""Five folds, each with a model and an optimizer of its own."""

import json

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import KFold
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = load_breast_cancer()
X = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
y = torch.tensor(data.target)
steps = samples = 0
for train, test in KFold(5).split(X):
    model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(TensorDataset(X[train], y[train]), batch_size=16, shuffle=True)
    for _ in range(4):
        model.train()
        for a, b in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(a), b).backward()
            optimizer.step()
            steps, samples = steps + 1, samples + len(a)
    model.eval()
    with torch.no_grad():
        (model(X[test]).argmax(1) == y[test]).float().mean().item()
print(json.dumps({"steps": steps, "samples": samples}))
