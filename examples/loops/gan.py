"""Generator and discriminator, both in every iteration."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8))
D = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters(), 2e-4), torch.optim.Adam(D.parameters(), 2e-4)
bce, iterations = nn.BCEWithLogitsLoss(), 0
for epoch in range(6):
    for (real,) in DataLoader(TensorDataset(torch.randn(640, 8)), batch_size=16):
        fake = G(torch.randn(len(real), 4))
        opt_d.zero_grad()
        loss_d = bce(D(real), torch.ones(len(real), 1)) + bce(D(fake.detach()), torch.zeros(len(real), 1))
        loss_d.backward()
        opt_d.step()
        opt_g.zero_grad()
        bce(D(fake), torch.ones(len(real), 1)).backward()
        opt_g.step()
        iterations += 1
print(json.dumps({"steps": iterations, "samples": 640 * 6, "epochs": 6}))
