"""torchensemble: gradient boosting fits its estimators one after another, from one loader."""

import json
import logging

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchensemble import GradientBoostingRegressor

logging.disable(logging.CRITICAL)
stepped = 0


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(32, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 1)
        )

    def forward(self, x):
        return self.body(x)


torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(1600, 32)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=40, shuffle=True)
model = GradientBoostingRegressor(estimator=MLP, n_estimators=4, cuda=False)
model.set_criterion(nn.MSELoss())
model.set_optimizer("Adam", lr=1e-3)
model.fit(loader, epochs=8, save_model=False, log_interval=10**6)
print(json.dumps({"steps": 4 * 8 * 40, "samples": 4 * 8 * 1600, "findings": []}))
